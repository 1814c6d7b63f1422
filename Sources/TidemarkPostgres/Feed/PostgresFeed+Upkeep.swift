#if PostgreSQL
  internal import Tidemark
  internal import TidemarkEngine
  internal import TidemarkSyncServer

  extension PostgresFeed: FeedUpkeep {
    var unreadableUploads: [TidemarkError] { [] }

    func observe(_ body: @escaping @Sendable () -> Void) -> Int { observers.observe(body) }
    func stopObserving(_ token: Int) { observers.stopObserving(token) }

    func space(from minimum: Int) throws(TidemarkError) -> LogSpace {
      guard
        var row = try pool.read([
          Statements.space(row, .bigint(PostgresContents.uploadKept))
        ])[0].first
      else { throw deleted() }
      let (bytes, garbage) = (try row.int(), try row.int())
      return LogSpace(log: bytes, reclaimable: garbage >= minimum ? garbage : 0)
    }

    /// How many offsets a slice looks at, and how long it should hold the row's lock.
    private static let sliceOffsets: Int64 = 500
    private static let sliceTime: Duration = .milliseconds(20)

    /// Deletes in slices, each a transaction: a server that is killed leaves whole slices.
    func compact(
      leaseSeconds: UInt32?, unless shouldStop: @escaping @Sendable () -> Bool
    ) throws(TidemarkError) -> CompactionSummary {
      guard try pool.write([Statements.takeUpkeep(row)])?[0].first != nil else {
        return CompactionSummary(CompactionReport())
      }
      defer { _ = try? pool.write([Statements.giveUpkeep(row)]) }
      var calls = [Statements.removeLeases(row)]
      if let leaseSeconds, leaseSeconds > 0 {
        calls.append(Statements.shortenLeases(row, .bigint(Int64(leaseSeconds) * 1000)))
      }
      _ = try pool.write(calls)
      var report = CompactionReport()
      report.bytesBefore = try space(from: 0).log
      let kept = Int64(clamping: history.wholeMilliseconds)
      report.droppedEntries = try slices(unless: shouldStop) {
        Statements.dropSuperseded(row, .bigint($0), .bigint(kept))
      }
      report.droppedTombstones = try slices(unless: shouldStop) {
        Statements.dropDeletes(row, .bigint($0))
      }
      report.droppedEntries += report.droppedTombstones
      _ = try pool.write(
        zip(
          ContentStatements.dropOld, [PostgresContents.uploadKept, PostgresContents.contentKept]
        ).map { $0(row, .bigint($1)) })
      // A part has up to 256 KiB.
      while !shouldStop(),
        var row = try pool.write([ContentStatements.dropParts(row, .bigint(100))])?[0].first,
        try row.bigint() > 0
      {}
      report.bytesAfter = try space(from: 0).log
      report.bytesFreed = report.bytesBefore - report.bytesAfter
      return CompactionSummary(report)
    }

    /// - Returns: how many rows were deleted.
    private func slices(
      unless shouldStop: () -> Bool, _ slice: (Int64) -> Call
    ) throws(TidemarkError) -> Int {
      var (offsets, dropped) = (Self.sliceOffsets, 0)
      while true {
        if shouldStop() { throw TidemarkError(.closed, "the compaction was told to stop") }
        let start = ContinuousClock.now
        let rows = try pool.write([Statements.lock(row), slice(offsets)])
        guard var row = rows?.last?.first else { throw deleted() }
        let passed = try row.bigint()
        dropped += try row.int()
        if passed < offsets { return dropped }
        let time = ContinuousClock.now - start
        offsets = time > Self.sliceTime ? max(offsets / 2, 8) : min(offsets * 2, Self.sliceOffsets)
        // Appends have the lock as long as slices have it.
        _ = Monitor(()).wait(timeoutNanoseconds: time.wholeMilliseconds * 1_000_000) { _ in false }
      }
    }
  }
#endif
