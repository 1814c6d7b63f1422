internal import Logging
internal import Synchronization
internal import Tidemark
internal import TidemarkSyncServer

/// Compacts databases in the background where it is worth it: one at a time, on a thread with a
/// lower priority than those of requests.
final class Compactor: Sendable {
  /// The result of the last check of a database.
  private struct Look {
    var time = ContinuousClock.now
    var log = 0
    /// Bytes that seemed reclaimable right after a compaction, and until when they do not count.
    var leftover = 0
    var leftoverUntil = ContinuousClock.now
    /// Until when the database is left alone after a failure.
    var failedUntil: ContinuousClock.Instant?
  }

  /// Most closed databases that are opened to check them, each time.
  private static let closedPerRound = 16
  /// How long a database is left alone where a compaction has failed.
  private static let pauseAfterFailure = Duration.seconds(3600)

  private let settings: CompactionSettings
  private let databases: DatabaseTable
  private let metrics: Metrics
  private let logger: Logger
  private let thread = WorkPool(threads: 1, perKey: 1, queued: 1)
  private let isStopping = Atomic(false)
  private let looks = Mutex<[DatabaseName: Look]>([:])

  init(
    _ settings: CompactionSettings, _ databases: DatabaseTable, _ metrics: Metrics, logger: Logger
  ) {
    self.settings = settings
    self.databases = databases
    self.metrics = metrics
    self.logger = logger
  }

  /// Checks databases at each interval, until it is stopped.
  func run() async {
    guard settings.isOn else { return }
    await onThread { ProcessLimits.giveWay() }
    while !isStopped, (try? await Task.sleep(for: settings.interval)) != nil {
      for name in await onThread({ self.due() }) ?? [] where !isStopped {
        await onThread { self.look(at: name) }
      }
    }
  }

  @discardableResult
  private func onThread<R: Sendable>(_ body: @escaping @Sendable () -> R) async -> R? {
    try? await thread.run("") { () throws(Problem) in body() }
  }

  /// Ends a running compaction early, and lets no other one begin.
  func stop() { isStopping.store(true, ordering: .relaxed) }

  /// Stops, and waits until no compaction runs any more.
  func shutDown() async {
    stop()
    await thread.shutDown()
  }

  private var isStopped: Bool { isStopping.load(ordering: .relaxed) }

  // MARK: What is due

  /// The databases to check: all open ones, and some closed ones.
  private func due() -> [DatabaseName] {
    let open = databases.openNames
    guard databases.hasRoomToSpare else { return open }
    let isOpen = Set(open)
    let end = ContinuousClock.now - settings.closedInterval
    let known = looks.withLock { $0 }
    let closed = databases.allNames().filter {
      !isOpen.contains($0) && (known[$0]?.time ?? end) <= end
    }
    return open + closed.prefix(Self.closedPerRound)
  }

  /// Compacts a database if it is worth it; blocks.
  private func look(at name: DatabaseName) {
    var look = looks.withLock { $0[name] } ?? Look(time: .now - settings.longInterval)
    if let until = look.failedUntil, until > .now { return }
    look.failedUntil = nil
    do {
      // Opening may take long, but no request waits for this thread.
      let lease = try databases.lease(name, mayCreate: false, isUse: false)
      // The lease keeps the database open until the compaction has ended.
      try withExtendedLifetime(lease) { try compactIfWorth(name, lease.handler, &look) }
    } catch {
      // That a database cannot be opened is logged already.
      look.time = .now
      if let error = error as? TidemarkError, !isStopped, error.code != .closed {
        look.failedUntil = .now + Self.pauseAfterFailure
        metrics.compactionFailed()
        logger.error(
          "database not compacted", metadata: ["database": "\(name)", "error": "\(error)"])
      }
    }
    let seen = look
    looks.withLock { $0[name] = seen }
  }

  private func compactIfWorth(
    _ name: DatabaseName, _ handler: SyncHandler, _ look: inout Look
  ) throws(TidemarkError) {
    // With this minimum it only reads counters; with a real one it reads old parts of the log.
    let quick = try handler.space(from: .max)
    let isEarly = look.time + settings.longInterval > .now
    if isEarly, abs(quick.log - look.log) < settings.leastBytes / 4 { return }
    look.time = .now
    if look.leftoverUntil <= .now { look.leftover = 0 }
    let before = try handler.space(from: settings.leastBytes)
    look.log = before.log
    guard settings.isWorth(before, leftover: look.leftover), !isStopped else { return }
    let start = ContinuousClock.now
    metrics.compactionBegan()
    defer { metrics.compactionEnded() }
    let summary = try handler.compact { [self] in isStopped }
    // Remembered answers to long polls have a range from before tombstones were dropped.
    databases.noteChange(of: name)
    let after = try handler.space(from: 1)
    look.log = after.log
    look.leftover = after.reclaimable
    look.leftoverUntil = .now + settings.closedInterval
    metrics.compacted(freed: summary.bytesFreed, in: ContinuousClock.now - start)
    logger.info(
      "database compacted",
      metadata: [
        "database": "\(name)", "bytes": "\(summary.bytesBefore)",
        "left": "\(summary.bytesAfter)", "dropped": "\(summary.droppedEntries)",
        "milliseconds": "\(Int((ContinuousClock.now - start) / .milliseconds(1)))",
      ])
  }
}
