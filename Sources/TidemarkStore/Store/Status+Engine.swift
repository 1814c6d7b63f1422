internal import TidemarkEngine

extension Store.Status {
  init(_ status: EngineStatus, backgroundError: TidemarkError?) {
    let files = Dictionary(
      status.segments.map { ($0.id, $0.file) }, uniquingKeysWith: { first, _ in first })
    self.init(
      storeID: status.storeID, replicaID: status.replicaID, keys: status.keys,
      sequence: status.sequence, epoch: status.epochs.last?.epoch ?? 0,
      durable: DurablePlace(
        file: status.durableFile, offset: status.durableOffset, sequence: status.durableSequence),
      bytes: Bytes(
        log: status.bytes.log, live: status.bytes.live, history: status.bytes.history,
        dead: status.bytes.dead, pinned: status.bytes.pinned, index: status.bytes.index,
        ballast: status.bytes.ballast),
      segments: status.segments.map { Segment($0) }, images: status.images.map { Image($0) },
      historyFrom: status.historyFrom, droppedThrough: status.droppedThrough,
      retention: status.retention, pins: status.pins,
      damage: status.damage.map { Damage($0, file: files[$0.segmentID]) },
      memoryBytes: status.memoryBytes, cacheBytes: status.cacheBytes, cacheHits: status.cacheHits,
      cacheMisses: status.cacheMisses,
      encryption: status.keyIDs.isEmpty
        ? nil : Encrypted(keys: status.keyIDs, filesToRewrite: status.filesToRewrite),
      compaction: BackgroundCompaction(
        isAutomatic: status.compaction.isAutomatic, isRunning: status.compaction.isRunning,
        runs: status.compaction.runs, bytesFreed: status.compaction.bytesFreed,
        neededBytes: status.compaction.neededBytes),
      isClosedCleanly: status.isClosedCleanly, isPoisoned: status.isPoisoned,
      backgroundError: backgroundError)
  }
}

extension Store.Status.Segment {
  init(_ segment: EngineStatus.Segment) {
    self.init(
      file: segment.file,
      sequences: segment.firstSequence..<max(segment.firstSequence, segment.lastSequence + 1),
      bytes: segment.length, supersededBytes: segment.supersededBytes,
      isSealed: segment.isSealed, isCompacted: segment.isCompacted)
  }
}

extension Store.Status.Image {
  init(_ image: Manifest.Image) {
    self.init(
      file: StoreLayout.indexDirectory + "/" + image.fileName, sequence: image.sequence,
      bytes: image.length)
  }
}

extension Store.Status.Damage {
  init(_ damage: Manifest.Damage, file: String?) {
    self.init(
      file: file ?? StoreLayout.logDirectory, offset: damage.offset, length: damage.length,
      sequences: damage.firstSequence...max(damage.firstSequence, damage.lastSequence),
      reason: String(decoding: damage.reason, as: UTF8.self),
      isAccepted: damage.state == .accepted)
  }
}
