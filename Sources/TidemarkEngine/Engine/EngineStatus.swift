/// The facts about a store at one moment.
package struct EngineStatus: Sendable {
  /// Bytes of the log by what they hold.
  package struct Bytes: Sendable, Hashable {
    /// Everything in the log directory.
    package var log = 0
    /// Entries that are their key's newest.
    package var live = 0
    /// Superseded entries that are kept.
    package var history = 0
    /// Superseded entries that a compaction would drop now.
    package var dead = 0
    /// Superseded entries that would be dead if nobody needed them.
    package var pinned = 0
    /// Index images.
    package var index = 0
    /// Set aside for a full disk.
    package var ballast = 0
  }

  /// The compactions that the store makes by itself, since it was opened.
  package struct Compaction: Sendable, Hashable {
    /// Whether it makes any.
    package var isAutomatic: Bool
    /// Whether one is running, whoever has asked for it.
    package var isRunning: Bool
    package var runs: Int
    package var bytesFreed: Int
    /// See ``CompactorState/neededBytes``.
    package var neededBytes: Int?
  }

  package struct Segment: Sendable {
    package var id: UInt64
    package var file: String
    package var firstSequence: UInt64
    package var lastSequence: UInt64
    package var length: Int
    package var isSealed: Bool
    package var isCompacted: Bool
    package var supersededBytes: Int
    /// How much of the segment that is, from 0 to 1.
    package var supersededShare: Double
  }

  package var storeID: [UInt8]
  package var replicaID: [UInt8]
  package var keys: Int
  package var sequence: UInt64
  package var durableSequence: UInt64
  /// Where the proven part of the log ends.
  package var durableFile: String
  package var durableOffset: Int
  package var bytes: Bytes
  package var segments: [Segment]
  package var images: [Manifest.Image]
  package var historyFrom: UInt64
  package var droppedThrough: UInt64
  package var epochs: [Manifest.Epoch]
  package var retention: Retention
  package var damage: [Manifest.Damage]
  package var isClosedCleanly: Bool
  /// Sequences at which views are open.
  package var pins: [UInt64]
  package var memoryBytes: Int
  package var cacheBytes: Int
  package var cacheHits: UInt64
  package var cacheMisses: UInt64
  package var isPoisoned: Bool
  package var compaction: Compaction
  /// The user's keys in use, that for new files first; empty when nothing is encrypted.
  package var keyIDs: [Encryption.KeyID]
  /// Files that do not have the first of these keys.
  package var filesToRewrite: Int
}

extension Engine {
  /// The facts about the store now.
  package func status() throws(TidemarkError) -> EngineStatus {
    let (poisoned, activeRawBytes) = writer.withLock { ($0.poison != nil, $0.appender?.rawBytes) }
    let compaction = writer.withLock { state in
      EngineStatus.Compaction(
        isAutomatic: state.compactor.isAutomatic, isRunning: state.compactor.isRunning,
        runs: state.compactor.runs, bytesFreed: state.compactor.bytesFreed,
        neededBytes: state.compactor.neededBytes)
    }
    try checkReadable()
    try countMissingUsage()
    let read = try reading.withLock { (read: inout ReadState) throws(TidemarkError) in
      try read.checkReadable()
      return StatusFigures(read, floor: neededFloor(read))
    }
    var bytes = EngineStatus.Bytes()
    var rows: [EngineStatus.Segment] = []
    for segment in read.segments {
      let length = segment.usedLength()
      let usage = read.usage.rows[segment.id] ?? SpaceUsage.Row()
      let superseded = usage.superseded
      let sealed = read.manifest.segments.first { $0.id == segment.id && $0.state == .sealed }
      // An active segment that another process writes is known by its length alone.
      let raw = sealed?.rawBytes ?? activeRawBytes ?? length
      let share = Double(superseded) / Double(max(raw, superseded, 1))
      // Cached data goes whatever the retention keeps.
      let keepsAll = read.manifest.retention == .everything
      let kept = keepsAll ? 1 - Double(usage.cached) / Double(max(superseded, 1)) : 0
      add(segment, length: length, superseded: share, kept: kept, read, to: &bytes)
      rows.append(
        EngineStatus.Segment(
          id: segment.id, file: segment.fileName, firstSequence: segment.firstSequence,
          lastSequence: segment.lastSequence, length: length, isSealed: segment.isSealed,
          isCompacted: segment.kind == .compacted, supersededBytes: superseded,
          supersededShare: share))
    }
    bytes.index = read.manifest.images.reduce(0) { $0 + $1.length }
    bytes.ballast = ballast.bytes
    let (file, offset) = try durablePlace(read)
    let cache = hotCache.statistics
    let others = try otherKeysBesideLog()
    let listed = read.manifest.keyIDs
    let unlisted = Set(others.compactMap(\.self)).subtracting(listed)
    return EngineStatus(
      storeID: read.manifest.storeID, replicaID: read.manifest.replicaID,
      keys: read.liveKeys, sequence: read.visible, durableSequence: read.durable,
      durableFile: file, durableOffset: offset, bytes: bytes, segments: rows,
      images: read.manifest.images, historyFrom: read.manifest.historyFrom,
      droppedThrough: read.manifest.droppedThrough, epochs: read.manifest.epochs,
      retention: read.manifest.retention, damage: read.manifest.damage,
      isClosedCleanly: read.manifest.isClosedCleanly, pins: read.pins,
      memoryBytes: read.indexBytes + objects.bytes + (caches.isShared ? 0 : caches.bytes)
        + read.segments.reduce(0) { $0 + $1.memoryBytes },
      cacheBytes: hotCache.bytes, cacheHits: cache.hits, cacheMisses: cache.misses,
      isPoisoned: poisoned, compaction: compaction, keyIDs: listed + unlisted,
      filesToRewrite: read.manifest.filesToRewrite + others.count)
  }

  /// Splits a segment's stored bytes by the share of raw bytes that is superseded.
  /// - Parameter kept: the share of these that the retention keeps in any case.
  private func add(
    _ segment: Segment, length: Int, superseded: Double, kept: Double, _ read: StatusFigures,
    to bytes: inout EngineStatus.Bytes
  ) {
    bytes.log += length
    var share = Int(Double(length) * superseded)
    bytes.live += length - share
    let history = Int(Double(share) * kept)
    bytes.history += history
    share -= history
    if segment.lastSequence <= read.floor {
      bytes.dead += share
    } else if segment.lastSequence <= read.visible, !read.pins.isEmpty {
      bytes.pinned += share
    } else {
      bytes.history += share
    }
  }

  /// The least sequence that a view, or the retention, still needs.
  func neededFloor(_ read: borrowing ReadState) -> UInt64 {
    if PlantedBug.isOn(.viewsForgotten) { return read.durable }
    return min(read.views.least ?? .max, read.durable)
  }

  /// Where the log is proven to be on the disk.
  private func durablePlace(_ read: StatusFigures) throws(TidemarkError) -> (String, Int) {
    guard let segment = read.durableSegment else {
      return (StoreLayout.logDirectory, 0)
    }
    if segment.isSealed, segment.lastSequence <= read.durable {
      return (segment.fileName, segment.usedLength())
    }
    guard read.durable >= segment.firstSequence,
      let (record, _) = try segment.frame(holding: read.durable)
    else { return (segment.fileName, FormatConstants.segmentHeaderBytes) }
    let front = try segment.front(record, caches: caches)
    return (segment.fileName, Int(record.offset) + front.header.totalLength)
  }

  /// Counts what is superseded in segments of which nothing is known: compaction made them
  /// after the image was written.
  func countMissingUsage() throws(TidemarkError) {
    let missing = reading.withLock { read in
      read.segments.filter { read.usage.rows[$0.id] == nil }
    }
    for segment in missing {
      let row: SpaceUsage.Row
      do throws(TidemarkError) { row = try usage(of: segment) } catch {
        // A compaction has replaced it meanwhile, and counted what it wrote instead.
        guard isCurrent(segment) else { continue }
        throw error
      }
      reading.withLock { read in
        guard read.segments.contains(where: { $0 === segment }) else { return }
        read.usage.rows[segment.id] = row
      }
    }
  }

  private func usage(of segment: Segment) throws(TidemarkError) -> SpaceUsage.Row {
    var usage = SpaceUsage.Row()
    for record in try segment.frames() {
      let front = try segment.front(record, caches: caches)
      for head in front.entries where head.kind != .record {
        let slot = try slot(ofKey: front.key(of: head))
        guard slot?.sequence != head.sequence, head.kind == .put else { continue }
        let bytes = head.keyLength + head.valueLength + 16
        usage.superseded += bytes
        if front.isCached(head) { usage.cached += bytes }
      }
    }
    return usage
  }

  /// How many keys there are; unlike ``liveKeys`` this is sure.
  package func countKeys() throws(TidemarkError) -> Int {
    try withIndex { (read) throws(IndexOrStoreError) in
      if read.staleBelow > 0 { throw .store(Self.possiblyStale(read.staleBelow)) }
      return read.index.liveKeys
    }
  }

  /// All labels in byte order, with how many keys carry each.
  package func labelCounts() throws(TidemarkError) -> [(label: [UInt8], count: Int)] {
    try withIndex { (read) throws(IndexOrStoreError) in
      if read.staleBelow > 0 { throw .store(Self.possiblyStale(read.staleBelow)) }
      do throws(IndexError) { return try read.index.labelCounts() } catch { throw .index(error) }
    }
  }
}

/// The figures of a status, all of them taken in one hold of the readers' lock: the index that some
/// of them come from changes with every write.
private struct StatusFigures {
  let segments: [Segment]
  let durableSegment: Segment?
  let visible: UInt64
  let durable: UInt64
  let floor: UInt64
  let manifest: Manifest
  let usage: SpaceUsage
  let pins: [UInt64]
  let liveKeys: Int
  let indexBytes: Int

  init(_ read: borrowing ReadState, floor: UInt64) {
    segments = read.segments
    durableSegment = read.segment(covering: max(read.durable, 1))
    visible = read.visible
    durable = read.durable
    self.floor = floor
    manifest = read.manifest
    usage = read.usage
    pins = read.views.sequences
    liveKeys = read.index.liveKeys
    indexBytes = read.index.memoryBytes
  }
}
