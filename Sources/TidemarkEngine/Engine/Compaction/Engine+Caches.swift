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
    let (bound, length, isKept) = reading.withLock { read -> (CacheBound?, Int, Bool) in
      let raw = read.manifest.segments.reduce(active) { $0 + $1.rawBytes }
      // All of a segment that was not counted may go.
      let cached = read.manifest.segments.reduce(0) {
        $0 + (read.usage.rows[$1.id]?.cached ?? $1.rawBytes)
      }
      return (
        CacheBound(bytes, raw: raw, cached: cached),
        read.segments.reduce(0) { $0 + $1.usedLength() }, read.keepsCached
      )
    }
    guard let bound else { return state.compactor.note(nil, excess: 0) }
    // While there is room for it: a disk may be hardly larger than its caches.
    let isTight = freeBytes.map { $0 < 2 * bound.segmentBytes } ?? false
    let excess = isKept ? 0 : length - bound.logBytes
    state.compactor.note(
      bound, excess: isTight ? max(1, excess) : excess,
      keepsReserve: isTight && length < configuration.ballastFromLogBytes)
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

  /// Bytes of free disk space that are missing for a write and for the compaction after it; 0 on a
  /// disk with much more room than the caches take.
  /// - Parameter bytes: how much the write appends to the log at most.
  package func lackingBytes(for bytes: Int) -> Int {
    guard writer.withLock({ $0.compactor.keepsReserve }), !keepsCached, let free = freeBytes else {
      return 0
    }
    return max(0, bytes + Limits.cacheReserveBytes - free)
  }

  /// An upper bound, in bytes, of what a compaction frees of evicted data, and of the space that is
  /// allocated to the active segment ahead of its end.
  package var looseBytes: Int {
    reading.withLock { read in
      let length = read.segments.reduce(0) { $0 + $1.usedLength() }
      return read.usage.rows.values.reduce(length / 8 + Limits.firstGrowthBytes) { $0 + $1.cached }
    }
  }

  /// Gives back what it can of cached data in the log that was given up, segment by segment, with
  /// what room there is.
  /// - Parameter seals: whether to seal the active segment where the others free nothing.
  /// - Returns: whether the log is shorter now.
  package func purgeCaches(seals: Bool) throws(TidemarkError) -> Bool {
    try countMissingUsage()
    guard reading.withLock({ read in read.usage.rows.values.contains { $0.cached > 0 } }) else {
      return false
    }
    do throws(TidemarkError) {
      if try purgeSealed() { return true }
      guard seals else { return false }
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

  /// The groups of segments that a purge rewrites, each in a step of its own. From `first` on these
  /// are groups in which the share of evicted bytes is at least half the average. Besides, short
  /// segments, which purges leave behind, are merged wherever many stand side by side.
  func purgeGroups(
    _ segments: [Segment], _ rows: [Manifest.Segment], _ usage: SpaceUsage, from first: UInt64,
    stepBytes: Int
  ) -> [CompactionPlan.Group] {
    func share(_ rows: [Manifest.Segment]) -> Double {
      let cached = rows.reduce(0) { $0 + (usage.rows[$1.id]?.cached ?? 0) }
      return Double(cached) / Double(max(1, rows.reduce(0) { $0 + $1.rawBytes }))
    }
    let groups = CompactionPlan(segments, rows: rows, mostBytes: stepBytes).groups
    let start = groups.firstIndex { $0.segments.contains { $0.id == first } } ?? 0
    let usual = share(groups[start...].flatMap(\.rows))
    return groups.enumerated().filter { (place, group) in
      group.segments.count > Self.shortSegments
        || place >= start && share(group.rows) > 0 && 2 * share(group.rows) >= usual
    }.map(\.element)
  }

  private static let shortSegments = 4
}
