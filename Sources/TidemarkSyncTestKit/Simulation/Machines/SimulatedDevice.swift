internal import Tidemark
internal import TidemarkEngine
internal import TidemarkSync
internal import TidemarkSyncServer
internal import TidemarkTestKit

/// A question to a resolver and its answer.
struct ResolverAnswer: Sendable {
  var key: [UInt8]
  var local: SyncContent?
  var remote: SyncContent?
  var resolution: ConflictResolution
}

/// A store that replicates, on a disk and with a clock of its own.
final class SimulatedDevice {
  static let path = "/store"
  static let scopes: [SyncScope] = [
    .everything, SyncScope(labels: ["a"]), SyncScope(labels: ["a", "b"]),
    SyncScope(keyPrefixes: ["h"]),
    SyncScope(labels: ["a"], keyPrefixes: ["c"]), .everything,
  ]
  static let resolvers: [ConflictResolver] = [
    .byPolicy, .remoteWins, .mergeFields(), .mergeFields(fallback: .remoteWins), .keepBoth(),
    .ask, .mergeFields(fallback: .ask), ConflictResolver(deleteEdit: .deleteWins) { _ in .local },
    ConflictResolver(deleteEdit: .resolve) { conflict in
      conflict.remoteTime.map { conflict.localTime < $0 } ?? false ? .remote : .local
    },
  ]

  /// The devices' rules for content, by their number.
  static let attachmentPolicies = [
    AttachmentPolicy(), AttachmentPolicy(afterUpload: .release),
    AttachmentPolicy(fetching: .eager(upTo: 100_000)),
  ]

  /// The scopes that authorizations reach; nil is everything.
  static let reaches: [SyncScope?] = [
    nil, SyncScope(labels: ["a"]), SyncScope(labels: ["a", "b"]),
    SyncScope(keyPrefixes: ["h"]),
    SyncScope(labels: ["b"], keyPrefixes: ["c"]), SyncScope(),
  ]

  let index: Int
  let clock: ManualClock
  var disk: SimulatedFileSystem
  private(set) var engine: Engine
  /// Nil while the device is off.
  private var store: Store?
  private(set) var session: SyncSession
  /// Count from the next session on.
  var scope = SyncScope.everything
  var resolver = 0
  /// Counts for calls that arrive from now on.
  var access = SyncAccess.everything
  /// Counts from the next call on.
  var direction = SyncDirection.both
  /// Counts connections: answers to calls of an earlier one are not taken.
  private(set) var connection = 0
  /// The call whose answer is awaited.
  var awaited: Int?
  var isPartitioned = false
  var copies: [DiskSnapshot] = []
  /// The survival of the power cut that is to come.
  var survival = Survival.loseAll
  private let answers = Lock<[ResolverAnswer]>([])

  init(
    _ index: Int, clock: ManualClock, disk: SimulatedFileSystem, random: UInt64
  ) throws(TidemarkError) {
    self.index = index
    self.clock = clock
    self.disk = disk
    let store = try Self.open(disk, clock, random)
    self.store = store
    engine = store.engine
    session = try SyncSession(ReplicationLog(engine), name: "server")
    try beginSession()
  }

  private static func open(
    _ disk: SimulatedFileSystem, _ clock: ManualClock, _ random: UInt64
  ) throws(TidemarkError) -> Store {
    var configuration = Store.Configuration().simulated(
      on: disk, clock: clock, random: SeededRandom(seed: random))
    configuration.engine = .campaign
    configuration.cacheBytes = configuration.engine.cacheBytes
    return try Store.openBlocking(at: path, configuration: configuration)
  }

  func open(random: UInt64) throws(TidemarkError) {
    let store = try Self.open(disk, clock, random)
    self.store = store
    engine = store.engine
    try beginSession()
  }

  /// Closes the store as a program does that ends in good order.
  func close() throws(TidemarkError) { try store?.blocking.close() }

  /// Lets the store go while its disk is off, so that it leaves nothing on the disk.
  func abandon() { store = nil }

  /// Commits a user's operations, of which the caches of the store hear.
  func commit(_ batch: OperationBatch, _ durability: Durability) throws(TidemarkError) {
    try store?.commitBlocking(batch, durability)
  }

  /// Commits a batch that may have cached values in it.
  func write(_ batch: WriteBatch) throws(TidemarkError) {
    _ = try store?.blocking.write(batch)
  }

  /// The cache of the store: what a server has that has nothing to do with replication.
  func cache() throws(TidemarkError) -> Cache<[UInt8]>? {
    try store?.cache(
      prefix: Self.cachePrefix, policy: Self.policies[index % Self.policies.count])
  }

  /// Users write to keys below it, too.
  static let cachePrefix = "k"
  private static let policies = [
    CachePolicy(capacity: 3), CachePolicy(capacity: nil, bytes: 300),
    CachePolicy(maxStale: .seconds(3600), capacity: 5),
  ]

  /// As a replicator does that is made with other settings.
  func beginSessionAnew() throws {
    try session.writeDown()
    try beginSession()
  }

  func beginSession() throws(TidemarkError) {
    let inner = Self.resolvers[resolver]
    let answers = answers
    session = try SyncSession(
      ReplicationLog(engine), name: "server", scope: scope,
      resolver: ConflictResolver(deleteEdit: .resolve) { conflict in
        let resolution = inner.resolve(conflict)
        answers.withLock {
          $0.append(
            ResolverAnswer(
              key: conflict.key.bytes, local: conflict.local, remote: conflict.remote,
              resolution: resolution))
        }
        return resolution
      }, capabilities: PeerCapabilities(hasMarkBehindBatch: true))
    session.attachmentPolicy = Self.attachmentPolicies[index % Self.attachmentPolicies.count]
    hangUp()
  }

  /// Whether compaction keeps what pending puts were made upon.
  var isPinned: Bool {
    guard let pin = session.pin else { return true }
    let now = UInt64(max(0, clock.now().milliseconds))
    return pin.renewed > now || now - pin.renewed < RetentionPin.millisecondsToLive
  }

  /// Nothing that was asked before is answered any more.
  func hangUp() {
    connection += 1
    awaited = nil
  }

  /// The questions to the resolver since the last time.
  func takeAnswers() -> [ResolverAnswer] {
    answers.withLock { answers in
      defer { answers = [] }
      return answers
    }
  }

  /// Lets go of what compactions keep for the server, as forgetting it does.
  func forgetPin() throws {
    var batch = OperationBatch()
    try session.records.removePin(into: &batch)
    try engine.commit(batch)
  }
}
