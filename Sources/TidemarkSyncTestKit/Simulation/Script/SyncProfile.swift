/// The steps that a ``SyncScript`` is rich in.
public struct SyncProfile: Sendable, Hashable {
  /// For reports.
  public var name: String
  /// How often each kind of event occurs, relative to the others.
  public var weights: [SyncEvent.Kind: Int]
  /// How many of the events that a server suffers, of those that may befall it and devices.
  public var serverShare: Double
  /// Keys that many write to, and keys that few do.
  public var hotKeys: Int
  public var coldKeys: Int
  /// Keys below a cache's prefix, to which users write as well.
  public var cacheKeys: Int
  /// How often several writes are one batch.
  public var batches: Double
  /// How often a put has an attachment.
  public var attachments: Double
  /// How much time passes at most, in seconds.
  public var longestAbsence: Int
  /// How often several events follow each other that chance alone rarely brings together.
  public var storyShare: Double
  /// Which ones.
  public var stories: [SyncStory]
  /// The story that some scripts begin with.
  public var opening: SyncStory?

  /// Creates a profile.
  public init(
    _ name: String, _ weights: [SyncEvent.Kind: Int], serverShare: Double = 0.25,
    hotKeys: Int = 5, coldKeys: Int = 30, cacheKeys: Int = 0, batches: Double = 0.15,
    longestAbsence: Int = 86_400, storyShare: Double = 0, stories: [SyncStory] = [],
    opening: SyncStory? = nil, attachments: Double = 0
  ) {
    self.attachments = attachments
    self.name = name
    self.weights = weights
    self.serverShare = serverShare
    self.hotKeys = hotKeys
    self.coldKeys = coldKeys
    self.cacheKeys = cacheKeys
    self.batches = batches
    self.longestAbsence = longestAbsence
    self.storyShare = storyShare
    self.stories = stories
    self.opening = opening
  }

  private static let network: [SyncEvent.Kind: Int] = [
    .write: 120, .durableWrite: 20, .call: 110, .deliver: 190, .drop: 15, .duplicate: 25,
    .giveUp: 20, .exchange: 50, .partition: 6, .heal: 8, .reopen: 5, .advance: 10, .policy: 4,
    .validator: 4, .resolver: 5, .compact: 3, .image: 3, .jump: 4, .fill: 1,
  ]

  private static func network(
    _ more: [SyncEvent.Kind: Int]
  ) -> [SyncEvent.Kind: Int] {
    network.merging(more) { $1 }
  }

  /// A bad network and nothing else.
  public static let weather = SyncProfile("weather", network)
  /// Processes that die and machines that lose power.
  public static let crashes = SyncProfile(
    "crashes", network([.kill: 14, .powerCut: 14, .fuse: 30, .exchange: 70]),
    serverShare: 0.4, storyShare: 0.005, stories: [.deletedUnseen])
  /// Devices that are restored from older copies, or copied.
  public static let copies = SyncProfile(
    "copies", network([.kill: 4, .powerCut: 4, .backUp: 10, .restore: 8, .clone: 2]),
    serverShare: 0, storyShare: 0.005, stories: [.clonedUnderWay],
    opening: .restoredToNothing)
  /// Servers, too, and servers made anew.
  public static let backups = SyncProfile(
    "backups",
    network([
      .kill: 4, .powerCut: 4, .backUp: 12, .restore: 8, .clone: 1, .anew: 1, .exchange: 70,
    ]), serverShare: 0.5, storyShare: 0.02,
    stories: [.restoredWhileAsked, .arrivedAfterRestore, .arrivedLate])
  /// Long absences and compaction without history.
  public static let absences = SyncProfile(
    "absences",
    network([.advance: 25, .dropHistory: 12, .compact: 6, .kill: 4, .exchange: 70, .jump: 8]),
    longestAbsence: 40 * 86_400, storyShare: 0.02,
    stories: [.returnedWithWinner, .returnedToDeletes, .returnedWithBatch, .deletedUnseen])
  /// Devices that want other entries than before.
  public static let scopes = SyncProfile(
    "scopes", network([.scope: 12, .kill: 3, .dropHistory: 2, .exchange: 70]))
  /// Devices whose authorization reaches other entries than before.
  public static let reaches = SyncProfile(
    "reaches", network([.reach: 12, .scope: 2, .kill: 3, .fuse: 3, .exchange: 70]))
  /// Devices that only send or only take for a while, and compaction without history.
  public static let oneWay = SyncProfile(
    "one way",
    network([.direction: 16, .dropHistory: 25, .compact: 6, .kill: 4, .exchange: 90]),
    serverShare: 0.15, longestAbsence: 40 * 86_400)
  /// Everybody writes to the same few keys.
  public static let conflicts = SyncProfile(
    "conflicts", network([.write: 160, .resolver: 10, .policy: 10, .fuse: 5]), hotKeys: 3,
    coldKeys: 3)
  /// Content beside the log, and stores that die, or come back from older copies, while it travels.
  public static let attachments = SyncProfile(
    "attachments",
    network([
      .kill: 14, .powerCut: 10, .fuse: 20, .backUp: 8, .restore: 4, .exchange: 90, .compact: 12,
      .scope: 2, .reach: 2,
    ]), serverShare: 0.4, attachments: 0.3)
  /// Devices with a cache beside what they replicate, whose keys users write to as well.
  public static let caches = SyncProfile(
    "caches",
    network([
      .cachePut: 130, .cacheRead: 60, .cacheTouch: 20, .cacheStale: 12, .cacheRemove: 25,
      .cacheExpire: 8, .kill: 6, .powerCut: 6, .fuse: 14, .reopen: 10, .exchange: 80,
      .compact: 8, .dropHistory: 6, .backUp: 3, .restore: 2, .clone: 1, .scope: 3, .jump: 10,
      .advance: 20,
    ]), coldKeys: 6, cacheKeys: 8)
  /// Everything at once.
  public static let all = SyncProfile(
    "all",
    network([
      .kill: 5, .powerCut: 5, .fuse: 10, .backUp: 8, .restore: 5, .clone: 1, .anew: 1,
      .advance: 15, .dropHistory: 5, .scope: 4, .exchange: 70, .direction: 3,
      .cachePut: 12, .cacheRead: 4, .cacheRemove: 3,
    ]), cacheKeys: 8, longestAbsence: 40 * 86_400, storyShare: 0.02,
    stories: SyncStory.allCases.filter { $0 != .restoredToNothing }, opening: .restoredToNothing)

  /// All there are; a seed picks one of them by its remainder.
  public static let everyKind: [SyncProfile] = [
    .weather, .crashes, .copies, .backups, .absences, .scopes, .conflicts, .all, .reaches, .oneWay,
    .attachments,
    .caches,
  ]

  /// The one that a seed picks.
  public static func picked(by seed: UInt64) -> SyncProfile {
    everyKind[Int(seed % UInt64(everyKind.count))]
  }
}
