internal import Tidemark
internal import TidemarkEngine
internal import TidemarkSync
internal import TidemarkSyncServer
internal import TidemarkTestKit

/// The feed below a simulated server: the log of a store, one in memory, or that of a database of
/// SQL, whose primary may be another one from call to call.
enum SimulatedFeed {
  case store(Engine, StoreFeed)
  case memory(MemoryFeed)
  case sql(SimulatedDatabase, DatabaseFeed)

  var feed: any Feed & FeedUpkeep {
    switch self {
    case .store(_, let feed): feed
    case .memory(let feed): feed
    case .sql(_, let feed): feed
    }
  }

  /// The log of a feed in memory, or of a database.
  private var log: MemoryFeedLog? {
    switch self {
    case .store: nil
    case .memory(let feed): feed.log
    case .sql(let database, _): database.primary.feed.log
    }
  }

  /// Opens what a disk has.
  /// - Parameter former: of a feed in memory or a database, which no disk holds.
  static func open(
    _ former: SimulatedFeed?, _ kind: SimulatedServer.Kind, _ disk: SimulatedFileSystem,
    _ clock: ManualClock, _ random: UInt64
  ) throws(TidemarkError) -> SimulatedFeed {
    switch kind {
    case .store:
      let engine = try Engine.open(
        SimulatedServer.path, configuration: .campaign,
        environment: EngineEnvironment(
          fileSystem: disk, clock: clock, random: SeededRandom(seed: random)))
      return .store(engine, try StoreFeed(engine))
    case .memory:
      var log = MemoryFeedLog(id: ReplicaID(of: random))
      if case .memory(let feed)? = former { log = feed.log }
      return .memory(
        try MemoryFeed(log, epoch: random | 1, clock: clock, medium: .file(on: disk)))
    case .sql:
      if case .sql(let database, _)? = former { return .sql(database, DatabaseFeed(database)) }
      let database = try SimulatedDatabase(seed: random, clock: clock, id: ReplicaID(of: random))
      return .sql(database, DatabaseFeed(database))
    }
  }

  /// A copy of what is in memory and would be on a disk.
  func copy() throws(TidemarkError) -> SimulatedFeed {
    guard let log else { return self }
    return .memory(try MemoryFeed(log, epoch: nil, clock: ManualClock()))
  }

  /// Puts a copy in the place of a database, beneath the servers that use it.
  /// - Returns: false for other feeds, which have to be opened anew.
  func restore(_ copy: SimulatedFeed) throws(TidemarkError) -> Bool {
    guard case .sql(let database, _) = self, let log = copy.log else { return false }
    try database.restore(log)
    return true
  }

  /// The part of a feed in memory that a cut of the power leaves.
  func afterPowerCut(_ random: UInt64) throws(TidemarkError) -> SimulatedFeed {
    guard case .memory(let feed) = self else { return self }
    var log = feed.log
    log.cutPower(keeping: random)
    return .memory(try MemoryFeed(log, epoch: nil, clock: ManualClock()))
  }

  // MARK: What an oracle sees

  /// The last offset.
  var head: UInt64 { log?.head ?? engine?.reader.lastSequence ?? 0 }

  var isClosed: Bool {
    engine?.reader.isClosed ?? ((try? feed.look(FeedQuestion())) == nil)
  }

  /// The store below; nil for others.
  var engine: Engine? {
    if case .store(let engine, _) = self { engine } else { nil }
  }

  /// The changes and losers behind an offset.
  func entries(after offset: UInt64) throws(TidemarkError) -> [ObservedEntry] {
    if let engine {
      return try ObservedEntry.all(in: engine, after: offset, includesLosers: true)
    }
    guard let entries = log?.entries, offset < entries.count else { return [] }
    return entries[Int(offset)...].compactMap { entry in
      switch entry {
      case .change(let change): ObservedEntry(change)
      case .loser(let change): ObservedEntry(change, isLoser: true)
      case .record, nil: nil
      }
    }
  }

  /// Everything that it holds.
  func state() throws(TidemarkError) -> [[UInt8]: Seen] {
    if let engine { return try Seen.state(engine) }
    var state: [[UInt8]: Seen] = [:]
    for case .change(let change)? in log?.entries ?? [] {
      let head = change.head
      let seen = Seen(
        sequence: head.offset, content: Content(change.value, head.labels), labels: head.labels,
        attachment: nil)
      state[head.key] = head.kind == .put ? seen : nil
    }
    return state
  }

  /// Drops what nobody needs.
  func compact(dropHistory: Bool) throws(TidemarkError) -> (entries: Int, tombstones: Int) {
    if let engine {
      let result = try engine.compact(CompactionOptions(dropHistory: dropHistory))
      return (result.droppedEntries, result.droppedTombstones)
    }
    guard dropHistory else { return (0, 0) }
    let result = try feed.compact(leaseSeconds: nil) { false }
    return (result.droppedEntries, result.droppedTombstones)
  }
}

extension MemoryFeed.Medium {
  /// A file to which every commit writes a byte, so that what befalls the disk befalls the feed.
  static func file(on disk: SimulatedFileSystem) -> MemoryFeed.Medium {
    @Sendable func use(_ body: (any File) throws(FileSystemError) -> Void) throws(TidemarkError) {
      do throws(FileSystemError) {
        let isThere = try disk.kind("/memory") != nil
        let file = try disk.open("/memory", isThere ? .readWrite : .create)
        defer { file.close() }
        try body(file)
      } catch { throw TidemarkError(.inputOutput, "the disk has failed", cause: error) }
    }
    var medium = MemoryFeed.Medium()
    medium.append = { () throws(TidemarkError) in
      try use { (file) throws(FileSystemError) in
        try file.writeFully([1].rawSpan, at: try file.length())
      }
    }
    medium.sync = { () throws(TidemarkError) in
      try use { (file) throws(FileSystemError) in try file.sync() }
    }
    return medium
  }
}

extension ObservedEntry {
  init(_ change: MemoryFeedLog.Change, isLoser: Bool = false) {
    let head = change.head
    self.init(
      sequence: head.offset, kind: isLoser ? .loser : head.kind == .put ? .put : .delete,
      key: head.key,
      content: head.kind == .put && !isLoser ? Content(change.value, head.labels) : .deleted,
      text: Self.short(change.value), labels: head.labels, origin: head.operation,
      commitTime: head.commitTime, isBroughtBack: false,
      isCached: head.attributes.entryClass == .cache)
  }
}

extension ReplicaID {
  fileprivate init(of random: UInt64) {
    let bytes = (0..<Self.byteCount).map { UInt8(truncatingIfNeeded: random >> ($0 % 8 * 8)) }
    guard let replica = ReplicaID(bytes) else { preconditionFailure("a replica has 16 bytes") }
    self = replica
  }
}
