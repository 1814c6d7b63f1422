extension Engine {
  /// The facts about the store now.
  package func status() throws(TidemarkError) -> EngineStatus {
    try reader.checkReadable()
    // First: segments that a compaction wrote may have no count of superseded bytes yet.
    try compactor.countMissingUsage()
    let active = writer.active
    let (read, index) = try reader.figures()
    var bytes = EngineStatus.Bytes()
    var rows: [EngineStatus.Segment] = []
    for segment in read.segments {
      let length = segment.usedLength()
      let usage = read.usage.rows[segment.id] ?? SpaceUsage.Row()
      let superseded = usage.superseded
      let share = read.supersededShare(of: segment, active: active)
      // The share of superseded bytes that stays: with all history kept, all but cached data.
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
    bytes.index = read.manifest.runs.reduce(0) { $0 + $1.length }
    bytes.ballast = writer.ballast.file.bytes
    let (file, offset) = try durablePlace(read)
    let cache = reader.hotCache.statistics
    let others = try otherKeysBesideLog()
    let listed = read.manifest.keyIDs
    let unlisted = Set(others.compactMap(\.self)).subtracting(listed)
    return EngineStatus(
      manifest: read.manifest, keys: index.liveKeys, sequence: read.visible,
      durableSequence: read.durable, durableFile: file, durableOffset: offset, bytes: bytes,
      segments: rows, pins: read.pins,
      memoryBytes: index.bytes + reader.objects.bytes
        + (store.caches.isShared ? 0 : store.caches.bytes)
        + read.segments.reduce(0) { $0 + $1.memoryBytes },
      cacheBytes: reader.hotCache.bytes, cacheHits: cache.hits, cacheMisses: cache.misses,
      isPoisoned: writer.isPoisoned, compaction: compactor.status, keyIDs: listed + unlisted,
      filesToRewrite: read.manifest.filesToRewrite + others.count)
  }

  /// Splits a segment's stored bytes by the share of raw bytes that is superseded.
  /// - Parameter kept: the share of the superseded bytes that the retention keeps in any case.
  private func add(
    _ segment: Segment, length: Int, superseded: Double, kept: Double, _ read: LogSnapshot,
    to bytes: inout EngineStatus.Bytes
  ) {
    bytes.log += length
    var share = Int(Double(length) * superseded)
    bytes.live += length - share
    let history = Int(Double(share) * kept)
    bytes.history += history
    share -= history
    // A segment counts as a whole: what ends at or below the floor no view or power cut needs.
    if segment.lastSequence <= read.neededFloor {
      bytes.dead += share
    } else if segment.lastSequence <= read.visible, !read.pins.isEmpty {
      bytes.pinned += share
    } else {
      bytes.history += share
    }
  }

  /// The file and offset up to which the log is known to be on the disk.
  private func durablePlace(_ read: LogSnapshot) throws(TidemarkError) -> (String, Int) {
    guard let segment = read.segments.covering(max(read.durable, 1)) else {
      return (StoreLayout.logDirectory, 0)
    }
    if segment.isSealed, segment.lastSequence <= read.durable {
      return (segment.fileName, segment.usedLength())
    }
    guard read.durable >= segment.firstSequence,
      let (record, _) = try segment.frame(holding: read.durable)
    else { return (segment.fileName, FormatConstants.segmentHeaderBytes) }
    let front = try segment.front(record, caches: store.caches)
    return (segment.fileName, Int(record.offset) + front.header.totalLength)
  }

  /// The keys (nil for none) of all attachments and hint files that lack the key for new files.
  private func otherKeysBesideLog() throws(TidemarkError) -> [Encryption.KeyID?] {
    guard let key = reader.manifest.keyID else { return [] }
    let hints = try HintFile.files(in: store, withoutKey: key).map(\.key)
    return try attachments.keys(otherThan: key) + hints
  }
}
