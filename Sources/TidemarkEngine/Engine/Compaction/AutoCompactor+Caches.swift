/// Compaction of a log that holds little but *cached data*: entries of caches, which a server has
/// too, so that they go as soon as something newer replaces or evicts them. The length from which
/// on such a log is compacted is its bound, see ``CacheBound``.
extension AutoCompactor {
  /// Sets how many bytes the caches of the store may keep.
  package func noteCacheBound(_ bytes: Int) {
    compacting.withLock { $0.cacheBytes = bytes }
    compactor.compareWithCacheBound()
  }

  /// Compares the log with its bound again if a segment has been added since.
  func recheckBoundAfterNewSegments() {
    let (isBound, last) = compacting.withLock { ($0.cacheBytes > 0, $0.lookedAt) }
    if isBound, last != reader.segments.last?.id { compactor.compareWithCacheBound() }
  }

  /// Whether open views or damage keep cached data that was given up: compaction cannot drop it.
  package var keepsCached: Bool { reader.snapshot.keepsCached }

  /// Whether those who write to caches are to wait: see ``keepCachesWithinBound()``.
  package var cachesAreFarOverBound: Bool {
    recheckBoundAfterNewSegments()
    return compacting.withLock { $0.isFarOverBound && $0.isAutomatic } && !writer.isShut
  }

  /// Waits until a log of caches is no more than a segment over its bound: a writer that is faster
  /// than the compaction in the background makes one itself. Call it before a put, with no lock
  /// held. The wait ends, too, once a compaction frees less than a segment.
  package func keepCachesWithinBound() {
    while cachesAreFarOverBound {
      if compacting.withLock({ $0.isRunning }) {
        compacting.wait { !$0.isRunning || !$0.isFarOverBound }
      } else if isDue() {
        // After a failure, too, the excess is accepted, which ends the loop. An error that keeps
        // the log from growing is the put's to throw.
        _ = try? compactIfWorthwhile()
      } else {
        // No compaction is due: nobody waits until the log is compared with its bound again.
        compacting.withLock { if !$0.isRunning { $0.acceptExcess() } }
      }
    }
  }

  /// Bytes of free disk space that are missing for a write and for the compaction after it; 0 on a
  /// disk with much more room than the caches take.
  /// - Parameter bytes: how much the write appends to the log at most.
  package func lackingBytes(for bytes: Int) -> Int {
    recheckBoundAfterNewSegments()
    guard compacting.withLock({ $0.keepsReserve }), !keepsCached, let free = freeBytes else {
      return 0
    }
    return max(0, bytes + Limits.cacheReserveBytes - free)
  }

  /// Bytes that a compaction may free of evicted data, as far as they were counted, with the space
  /// that ``SegmentAppender/reserve(_:)`` may have allocated ahead.
  package var looseBytes: Int {
    let log = reader.snapshot
    return log.usage.rows.values.reduce(log.usedBytes / 8 + Limits.firstGrowthBytes) {
      $0 + $1.cached
    }
  }

  /// On a full disk, drops cached data that was given up: segment by segment, to take least room.
  /// - Parameter seals: whether to seal the active segment where the others free nothing.
  /// - Returns: whether the log is shorter now.
  package func purgeCaches(seals: Bool) throws(TidemarkError) -> Bool {
    try compactor.countMissingUsage()
    guard reader.snapshot.usage.rows.values.contains(where: { $0.cached > 0 }) else { return false }
    do throws(TidemarkError) {
      if try purgeSealed() { return true }
      guard seals else { return false }
      // Last, since sealing needs room on the disk.
      try writer.ballast.give { () throws(TidemarkError) in try writer.sealSegments() }
      try writer.flush()
      return try purgeSealed()
    } catch {
      // There is no room even for the smallest rewrite.
      guard error.code == .noSpace else { throw error }
      return false
    }
  }

  private func purgeSealed() throws(TidemarkError) -> Bool {
    guard let first = reader.snapshot.firstWithCached else { return false }
    var options = CompactionOptions(shouldStop: { [writer] in writer.isShut })
    // 0: one segment at a time, which takes the least room.
    options.automatic = CompactionOptions.Automatic(first: first, stepBytes: 0)
    let purge = options
    do throws(TidemarkError) {
      return try writer.ballast.give { () throws(TidemarkError) in try compactor.compact(purge) }
        .bytesFreed > 0
    } catch {
      guard error.code == .noSpace else { throw error }
      return false
    }
  }

  /// Drops all cached data that was given up from the log, but for what open views show.
  func erase() throws(TidemarkError) {
    // Only sealed segments are rewritten, and only what something durable has replaced is dropped.
    try writer.sealSegments()
    try writer.flush()
    // An eviction stays in the log while the index has it: the new run leaves it out.
    try compactor.checkpointer.writeWholeRun()
    try compactor.countMissingUsage()
    var options = CompactionOptions(shouldStop: { [writer] in writer.isShut })
    options.automatic = CompactionOptions.Automatic(first: nil, pace: nil)
    try compactor.compact(options)
  }
}

extension LogSnapshot {
  /// The id of the first sealed segment with cached data that can go; one not yet counted may have.
  var firstWithCached: UInt64? {
    segments.first { $0.isSealed && usage.rows[$0.id]?.cached ?? 1 > 0 }?.id
  }
}

extension Compactor {
  /// Works out whether the log holds little but caches with bounds, and by how many bytes it is
  /// longer than these allow, and tells writers and the next compaction. Call it with no lock held.
  func compareWithCacheBound() {
    let bytes = compacting.withLock { $0.cacheBytes }
    let log = reader.snapshot
    let bound = bytes > 0 ? cacheBound(bytes, log) : nil
    let length = log.usedBytes
    // Whether there is no room for two more segments, as on a disk hardly larger than its caches.
    var isTight = false
    if let bound, let free = freeBytes { isTight = free < 2 * bound.segmentBytes }
    let excess = bound.map { log.keepsCached ? 0 : length - $0.logBytes } ?? 0
    // A longer log has a ballast instead.
    let keepsReserve = isTight && length < configuration.ballastFromLogBytes
    let isCurrent = compacting.withLock { [isTight] state in
      guard state.cacheBytes == bytes else { return false }
      state.lookedAt = log.segments.last?.id
      // On a tight disk the log counts as over its bound: each new segment calls for a purge.
      state.note(bound, excess: isTight ? max(1, excess) : excess, keepsReserve: keepsReserve)
      return true
    }
    // Another thread has set other bounds since, and makes the comparison itself.
    guard isCurrent else { return }
    compacting.broadcast()
    writer.bound(
      SegmentLimits(segmentBytes: bound?.segmentBytes ?? .max, keepsReserve: keepsReserve))
  }

  private func cacheBound(_ bytes: Int, _ log: LogSnapshot) -> CacheBound? {
    let rows = log.manifest.segments
    return CacheBound(
      bytes, raw: rows.reduce(writer.active?.rawBytes ?? 0) { $0 + $1.rawBytes },
      // In a segment that was not counted all bytes may be cached data that can go.
      cached: rows.reduce(0) { $0 + (log.usage.rows[$1.id]?.cached ?? $1.rawBytes) })
  }
}
