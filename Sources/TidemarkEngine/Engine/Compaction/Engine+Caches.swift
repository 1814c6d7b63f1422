extension Engine {
  /// Takes note how much the caches of the store may keep.
  package func noteCacheBound(_ bytes: Int) {
    writer.withLock { state in
      state.compactor.cacheBytes = bytes
      lookAtCaches(&state)
    }
  }

  /// Looks whether the log may be all of caches with bounds, and takes more than these allow.
  func lookAtCaches(_ state: inout WriterState) {
    let bytes = state.compactor.cacheBytes
    guard bytes > 0 else { return state.compactor.note(nil, excess: 0) }
    let active = state.appender?.rawBytes ?? 0
    let (bound, excess) = reading.withLock { read -> (CacheBound?, Int) in
      let raw = read.manifest.segments.reduce(active) { $0 + $1.rawBytes }
      // All of a segment that was not counted may go.
      let cached = read.manifest.segments.reduce(0) {
        $0 + (read.usage.rows[$1.id]?.cached ?? $1.rawBytes)
      }
      let bound = CacheBound(bytes, raw: raw, cached: cached)
      guard let bound, !read.keepsCached else { return (bound, 0) }
      return (bound, read.segments.reduce(-bound.logBytes) { $0 + $1.usedLength() })
    }
    // While there is room for it: a disk may be hardly larger than its caches.
    let free = bound == nil ? nil : freeBytes
    let isTight = free.map { $0 < 2 * (bound?.segmentBytes ?? 0) } ?? false
    state.compactor.note(bound, excess: isTight ? max(1, excess) : excess, isTight: isTight)
  }

  /// Whether open views or damage keep cached data that was given up, whatever the figures say.
  package var keepsCached: Bool { reading.withLock { $0.keepsCached } }

  /// Whether those who write to caches are to wait: see ``keepCachesWithinBound()``.
  package var cachesAreFarOverBound: Bool {
    writer.withLock { state in
      state.compactor.isFarOverBound && state.compactor.isAutomatic && !state.isClosed
        && !state.isSuspended
    }
  }

  /// Waits until a log of caches has given back what it takes too much: whoever writes faster than
  /// it is compacted in the background makes the compaction himself. It ends where one gains less
  /// than a segment, whose length may be written before it is looked again.
  package func keepCachesWithinBound() {
    while cachesAreFarOverBound {
      if writer.withLock({ $0.compactor.isRunning }) {
        writer.wait { !$0.compactor.isRunning || !$0.compactor.isFarOverBound }
      } else if compactionIsDue() {
        // The put tells what keeps it from being written.
        _ = try? compactIfWorthwhile()
      } else {
        writer.withLock { if !$0.compactor.isRunning { $0.compactor.acceptExcess() } }
      }
    }
  }

  /// Gives some of the space back that is set aside for a full disk.
  /// - Returns: whether there was any.
  package func releaseBallast(_ bytes: Int) -> Bool { ballast.release(bytes) }

  /// Bytes that are free on the disk; nil where that is not known.
  package var freeBytes: Int? { environment.fileSystem.freeBytes(path) }

  /// Whether a batch of so many bytes would leave no room to compact a log of caches on a disk that
  /// is hardly larger than these.
  package func lacksRoom(for bytes: Int) -> Bool {
    guard writer.withLock({ $0.compactor.isTight }), let free = freeBytes else { return false }
    return free < bytes + Limits.cacheReserveBytes
  }

  /// Gives back what it can of cached data in the log that was given up, segment by segment, with
  /// what room there is.
  /// - Returns: whether the log is shorter now.
  package func purgeCaches() throws(TidemarkError) -> Bool {
    try countMissingUsage()
    guard reading.withLock({ read in read.usage.rows.values.contains { $0.cached > 0 } }) else {
      return false
    }
    do throws(TidemarkError) {
      if try purgeSealed() { return true }
      // The segment that is being written is the last to take some room.
      try withBallast { () throws(TidemarkError) in try sealSegments() }
      try flush()
      return try purgeSealed()
    } catch {
      // No segment has so little left that it finds room.
      guard error.code == .noSpace else { throw error }
      return false
    }
  }

  private func purgeSealed() throws(TidemarkError) -> Bool {
    guard let first = firstWithCached() else { return false }
    var options = CompactionOptions { [self] in writer.withLock { $0.isClosed || $0.isSuspended } }
    options.automatic = CompactionOptions.Automatic(first: first, stepBytes: 0)
    let purge = options
    do throws(TidemarkError) {
      return try withBallast { () throws(TidemarkError) in try compact(purge) }.bytesFreed > 0
    } catch {
      guard error.code == .noSpace else { throw error }
      return false
    }
  }

  /// The id of the first sealed segment with cached data that can go.
  func firstWithCached() -> UInt64? {
    reading.withLock { read in
      read.segments.first { $0.isSealed && read.usage.rows[$0.id]?.cached ?? 1 > 0 }?.id
    }
  }

  /// The groups of a purge by steps: those of which at least half the usual share can go, and those
  /// of many short segments.
  func purgeGroups(
    _ segments: [Segment], _ rows: [Manifest.Segment], _ usage: SpaceUsage, stepBytes: Int
  ) -> [CompactionPlan.Group] {
    func share(_ rows: [Manifest.Segment]) -> Double {
      let cached = rows.reduce(0) { $0 + (usage.rows[$1.id]?.cached ?? 0) }
      return Double(cached) / Double(max(1, rows.reduce(0) { $0 + $1.rawBytes }))
    }
    let groups = CompactionPlan(segments, rows: rows, mostBytes: stepBytes).groups
    let usual = share(groups.flatMap(\.rows))
    return groups.filter {
      share($0.rows) > 0 && 2 * share($0.rows) >= usual || $0.segments.count > Self.shortSegments
    }
  }

  private static let shortSegments = 4
}
