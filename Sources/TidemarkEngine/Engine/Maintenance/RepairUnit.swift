/// Entries on their way into one segment of the repaired store.
struct RepairUnit {
  private struct Item {
    var front: DecodedFront
    var head: EntryHead
    var valueStart: Int
  }

  private var items: [Item] = []
  private var values: [UInt8] = []
  private var rawBytes = 0
  private var first: UInt64 = .max
  private var last: UInt64 = 0
  private var latestTime: Timestamp?
  private(set) var latestCommitTime: UInt64 = 0

  var isEmpty: Bool { items.isEmpty }
  /// Whether it should be written before more comes.
  func isFull(expecting more: Int = 0) -> Bool {
    rawBytes + more > Limits.compactionUnitBytes || items.count >= Limits.repairUnitEntries
  }

  /// Adds an entry whose value is intact.
  mutating func add(
    _ head: EntryHead, of front: DecodedFront, values frame: RepairReader.Values
  ) throws(FormatError) {
    let start = values.count
    if head.valueLength > 0 {
      values.append(
        copying: try frame.bytes.rawSpan.slice(head.valueOffset, head.valueLength))
    }
    items.append(Item(front: front, head: head, valueStart: start))
    rawBytes += head.keyLength + head.valueLength + head.attributesLength + 32
    first = min(first, head.sequence)
    last = max(last, head.sequence)
    let time = try front.attributes(of: head).time ?? HybridTime(head.commitTime).timestamp
    latestTime = max(latestTime ?? time, time)
    latestCommitTime = max(latestCommitTime, head.commitTime)
  }

  /// Writes everything into a new segment.
  /// - Parameters:
  ///   - id: the segment's.
  ///   - target: the new store.
  ///   - storeID: the new store's.
  ///   - environment: what it is on.
  ///   - contexts: compress.
  ///   - fileKey: drawn for this segment; nil when it is not to be encrypted.
  /// - Returns: its row for MANIFEST.
  func write(
    id: UInt64, to target: StoreTarget, storeID: [UInt8], environment: EngineEnvironment,
    contexts: ZstdContexts, fileKey: NewFileKey?
  ) throws(TidemarkError) -> Manifest.Segment {
    let sorted = items.sorted { a, b in
      let order = a.front.key(of: a.head).compare(to: b.front.key(of: b.head))
      return order != 0 ? order < 0 : a.head.sequence < b.head.sequence
    }
    var row = Manifest.Segment(
      id: id, state: .sealed, kind: .compacted,
      salt: UInt32(truncatingIfNeeded: environment.random.next()), firstSequence: first)
    row.keyID = fileKey?.keyID
    do throws(LogReadError) {
      var writer = try CompactedSegmentWriter(
        creating: row, storeID: storeID, storePath: target.path,
        fileSystem: environment.fileSystem, contexts: contexts,
        layout: SegmentLayout(level: FrameCodecs.fastLevel), fileKey: fileKey)
      for item in sorted { try Self.add(item, values, to: &writer) }
      return try writer.finish(
        lastSequence: last, latestTime: latestTime, latestCommitTime: latestCommitTime)
    } catch {
      switch error {
      case .system(let error): throw TidemarkError(error, while: "writing the repaired store")
      case .format(let error):
        throw TidemarkError(
          .inputOutput, "the repaired store cannot be written: \(error.reason)", cause: error)
      }
    }
  }

  private static func add(
    _ item: Item, _ values: [UInt8], to writer: inout CompactedSegmentWriter
  ) throws(LogReadError) {
    let head = item.head
    let entry = FrameBuilder.Entry(rewriting: head)
    let end = item.valueStart + head.valueLength
    try writer.add(
      entry, key: item.front.key(of: head),
      value: head.hasValue ? values.rawSpan.extracting(item.valueStart..<end) : nil,
      attributes: item.front.attributeBytes(of: head), labels: item.front.labels(of: head))
  }
}
