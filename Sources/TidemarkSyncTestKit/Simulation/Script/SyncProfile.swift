/// Decides which events a made-up ``SyncScript`` has often, such as crashes, conflicts or long
/// absences.
public struct SyncProfile: Sendable, Hashable {
  /// The name of the profile, for reports.
  public var name: String
  /// How often each kind of event occurs, relative to the other kinds.
  public var weights: [SyncEvent.Kind: Int]
  /// The share, from 0 to 1, of events that happen to the server, among events that can happen to
  /// the server or a device.
  public var serverShare: Double
  /// How many keys are written often, by many devices.
  public var hotKeys: Int
  /// How many keys are written rarely, by few devices.
  public var coldKeys: Int
  /// How many keys lie below a cache's prefix, to which users write as well.
  public var cacheKeys: Int
  /// The probability that a write event is a batch of several writes.
  public var batches: Double
  /// The probability that a put has an attachment.
  public var attachments: Double
  /// The most seconds that pass in one `advance` event.
  public var longestAbsence: Int
  /// The probability of a story from ``stories``: a sequence of events that chance alone rarely
  /// produces.
  public var storyShare: Double
  /// The stories from which the script may choose.
  public var stories: [SyncStory]
  /// The story with which some scripts begin; nil for none.
  public var opening: SyncStory?

  /// Creates a profile for made-up scripts.
  /// - Parameters:
  ///   - name: the name, for reports.
  ///   - weights: how often each kind of event occurs, relative to the others.
  ///   - serverShare: the share of events that happen to the server.
  ///   - hotKeys: how many keys are written often.
  ///   - coldKeys: how many keys are written rarely.
  ///   - cacheKeys: how many keys lie below a cache's prefix.
  ///   - batches: the probability that a write event is a batch.
  ///   - longestAbsence: the most seconds that pass at once.
  ///   - storyShare: the probability of a story.
  ///   - stories: the stories to choose from.
  ///   - opening: the story with which some scripts begin; nil for none.
  ///   - attachments: the probability that a put has an attachment.
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
    .validator: 4, .resolver: 5, .compact: 3, .run: 3, .jump: 4, .fill: 1,
  ]

  private static func network(
    _ more: [SyncEvent.Kind: Int]
  ) -> [SyncEvent.Kind: Int] {
    network.merging(more) { $1 }
  }

  /// A profile with a bad network and no other disturbance.
  public static let weather = SyncProfile("weather", network)
  /// A profile in which processes die and machines lose power.
  public static let crashes = SyncProfile(
    "crashes", network([.kill: 14, .powerCut: 14, .fuse: 30, .exchange: 70]),
    serverShare: 0.4, storyShare: 0.005, stories: [.deletedUnseen])
  /// A profile in which devices are restored from older copies, or cloned.
  public static let copies = SyncProfile(
    "copies", network([.kill: 4, .powerCut: 4, .backUp: 10, .restore: 8, .clone: 2]),
    serverShare: 0, storyShare: 0.005, stories: [.clonedUnderWay],
    opening: .restoredToNothing)
  /// A profile in which devices and the server are restored from older copies, and the server also
  /// starts anew.
  public static let backups = SyncProfile(
    "backups",
    network([
      .kill: 4, .powerCut: 4, .backUp: 12, .restore: 8, .clone: 1, .anew: 1, .exchange: 70,
    ]), serverShare: 0.5, storyShare: 0.02,
    stories: [.restoredWhileAsked, .arrivedAfterRestore, .arrivedLate])
  /// A profile with long absences of devices, and with compaction that drops history.
  public static let absences = SyncProfile(
    "absences",
    network([.advance: 25, .dropHistory: 12, .compact: 6, .kill: 4, .exchange: 70, .jump: 8]),
    longestAbsence: 40 * 86_400, storyShare: 0.02,
    stories: [.returnedWithWinner, .returnedToDeletes, .returnedWithBatch, .deletedUnseen])
  /// A profile in which devices change their scopes.
  public static let scopes = SyncProfile(
    "scopes", network([.scope: 12, .kill: 3, .dropHistory: 2, .exchange: 70]))
  /// A profile in which the authorizations of devices change.
  public static let reaches = SyncProfile(
    "reaches", network([.reach: 12, .scope: 2, .kill: 3, .fuse: 3, .exchange: 70]))
  /// A profile in which devices only push or only pull for a while, and compaction drops history.
  public static let oneWay = SyncProfile(
    "one way",
    network([.direction: 16, .dropHistory: 25, .compact: 6, .kill: 4, .exchange: 90]),
    serverShare: 0.15, longestAbsence: 40 * 86_400)
  /// A profile in which all devices write to the same few keys.
  public static let conflicts = SyncProfile(
    "conflicts", network([.write: 160, .resolver: 10, .policy: 10, .fuse: 5]), hotKeys: 3,
    coldKeys: 3)
  /// A profile with attachments, and stores that die or are restored while an attachment is
  /// transferred.
  public static let attachments = SyncProfile(
    "attachments",
    network([
      .kill: 14, .powerCut: 10, .fuse: 20, .backUp: 8, .restore: 4, .exchange: 90, .compact: 12,
      .scope: 2, .reach: 2,
    ]), serverShare: 0.4, attachments: 0.3)
  /// A profile in which devices also have a cache, and users write to the cache's keys.
  public static let caches = SyncProfile(
    "caches",
    network([
      .cachePut: 130, .cacheRead: 60, .cacheTouch: 20, .cacheStale: 12, .cacheRemove: 25,
      .cacheExpire: 8, .kill: 6, .powerCut: 6, .fuse: 14, .reopen: 10, .exchange: 80,
      .compact: 8, .dropHistory: 6, .backUp: 3, .restore: 2, .clone: 1, .scope: 3, .jump: 10,
      .advance: 20,
    ]), coldKeys: 6, cacheKeys: 8)
  /// A profile in which every kind of event occurs.
  public static let all = SyncProfile(
    "all",
    network([
      .kill: 5, .powerCut: 5, .fuse: 10, .backUp: 8, .restore: 5, .clone: 1, .anew: 1,
      .advance: 15, .dropHistory: 5, .scope: 4, .exchange: 70, .direction: 3,
      .cachePut: 12, .cacheRead: 4, .cacheRemove: 3,
    ]), cacheKeys: 8, longestAbsence: 40 * 86_400, storyShare: 0.02,
    stories: SyncStory.allCases.filter { $0 != .restoredToNothing }, opening: .restoredToNothing)

  /// All profiles. A seed picks one of them by its remainder.
  public static let everyKind: [SyncProfile] = [
    .weather, .crashes, .copies, .backups, .absences, .scopes, .conflicts, .all, .reaches, .oneWay,
    .attachments,
    .caches,
  ]

  /// Returns the profile that a seed picks from ``everyKind``.
  public static func picked(by seed: UInt64) -> SyncProfile {
    everyKind[Int(seed % UInt64(everyKind.count))]
  }
}
