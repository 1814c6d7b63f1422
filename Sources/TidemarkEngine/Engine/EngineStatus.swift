/// What there is to say of a store at one moment.
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
  /// The user's keys in use, that for new files first; empty when nothing is encrypted.
  package var keyIDs: [Encryption.KeyID]
  /// Files of the log and the index that do not have the first of these keys.
  package var filesToRewrite: Int
}

extension Engine {
  /// What there is to say of the store now.
  package func status() throws(TidemarkError) -> EngineStatus {
    let (poisoned, activeRawBytes) = writer.withLock { ($0.poison != nil, $0.appender?.rawBytes) }
    try checkReadable()
    try countMissingUsage()
    let (read, segments) = reading.withLock { read in (read, read.segments) }
    try read.checkReadable()
    var bytes = EngineStatus.Bytes()
    var rows: [EngineStatus.Segment] = []
    let floor = neededFloor(read)
    for segment in segments {
      let length: Int
      do { length = try segment.usedLength() } catch {
        throw TidemarkError(error, while: "looking at the log")
      }
      let superseded = read.usage.supersededBytes[segment.id] ?? 0
      let sealed = read.manifest.segments.first { $0.id == segment.id && $0.state == .sealed }
      // Of an active segment that another process writes, the length is all that is known.
      let raw = sealed?.rawBytes ?? activeRawBytes ?? length
      let share = Double(superseded) / Double(max(raw, superseded, 1))
      add(segment, length: length, superseded: share, floor: floor, read, to: &bytes)
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
    return EngineStatus(
      storeID: read.manifest.storeID, replicaID: read.manifest.replicaID,
      keys: read.index.liveKeys, sequence: read.visible, durableSequence: read.durable,
      durableFile: file, durableOffset: offset, bytes: bytes, segments: rows,
      images: read.manifest.images, historyFrom: read.manifest.historyFrom,
      droppedThrough: read.manifest.droppedThrough, epochs: read.manifest.epochs,
      retention: read.manifest.retention, damage: read.manifest.damage,
      isClosedCleanly: read.manifest.isClosedCleanly, pins: read.pins.keys.sorted(),
      memoryBytes: read.index.memoryBytes + caches.bytes
        + segments.reduce(0) { $0 + $1.memoryBytes },
      cacheBytes: hotCache.bytes, cacheHits: cache.hits, cacheMisses: cache.misses,
      isPoisoned: poisoned, keyIDs: read.manifest.keyIDs,
      filesToRewrite: read.manifest.filesToRewrite)
  }

  /// Splits a segment's stored bytes by the share of raw bytes that is superseded.
  private func add(
    _ segment: Segment, length: Int, superseded: Double, floor: UInt64, _ read: ReadState,
    to bytes: inout EngineStatus.Bytes
  ) {
    bytes.log += length
    let share = Int(Double(length) * superseded)
    bytes.live += length - share
    guard read.manifest.retention != .everything else {
      bytes.history += share
      return
    }
    if segment.lastSequence <= floor {
      bytes.dead += share
    } else if segment.lastSequence <= read.visible, !read.pins.isEmpty {
      bytes.pinned += share
    } else {
      bytes.history += share
    }
  }

  /// The least sequence that a view, or the retention, still needs.
  func neededFloor(_ read: ReadState) -> UInt64 {
    #if TIDEMARK_PLANTED
      if PlantedBug.isOn(.viewsForgotten) { return read.durable }
    #endif
    return min(read.pins.keys.min() ?? .max, read.durable)
  }

  /// Where the log is proven to be on the disk.
  private func durablePlace(_ read: ReadState) throws(TidemarkError) -> (String, Int) {
    guard let segment = read.segment(covering: max(read.durable, 1)) else {
      return (StoreLayout.logDirectory, 0)
    }
    if segment.isSealed, segment.lastSequence <= read.durable {
      do { return (segment.fileName, try segment.usedLength()) } catch {
        throw TidemarkError(error, while: "looking at the log")
      }
    }
    guard read.durable >= segment.firstSequence,
      let (record, _) = try segment.frame(holding: read.durable)
    else { return (segment.fileName, FormatConstants.segmentHeaderBytes) }
    let front = try segment.front(record, caches: caches)
    return (segment.fileName, Int(record.offset) + front.header.totalLength)
  }

  /// Counts what is superseded in segments of which nothing is known: compaction made them
  /// after the image was written.
  private func countMissingUsage() throws(TidemarkError) {
    let missing = reading.withLock { read in
      read.segments.filter { read.usage.supersededBytes[$0.id] == nil }
    }
    for segment in missing {
      var superseded = 0
      for record in try segment.frames() {
        let front = try segment.front(record, caches: caches)
        for head in front.entries where head.kind != .record {
          let slot = try slot(ofKey: front.key(of: head))
          guard slot?.sequence != head.sequence, head.kind == .put else { continue }
          superseded += head.keyLength + head.valueLength + 16
        }
      }
      let bytes = superseded
      reading.withLock { $0.usage.supersededBytes[segment.id] = bytes }
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
