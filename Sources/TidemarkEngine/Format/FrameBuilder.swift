/// Where a value stands in the frame that holds it.
package struct ValuePlace: Sendable, Hashable {
  /// Block within the frame.
  package var block: UInt32
  /// Position within the raw block.
  package var position: UInt32
}

/// Collects entries and turns them into one frame: their headers (*heads*) in one piece, their
/// values in blocks. Readers find the values of staged entries here until they are in the log.
package struct FrameBuilder: Sendable {
  package var entryCount: Int { heads.count }
  package private(set) var firstSequence: UInt64 = 0
  package private(set) var lastSequence: UInt64 = 0
  /// True for compacted segments, which are not in order of sequence; else sequences are dense.
  let hasExplicitSequences: Bool
  /// Whether the frame holds what compaction keeps apart from the newest versions of the keys.
  let isHistory: Bool
  /// A block is closed once it holds this many raw bytes.
  private let blockTarget: Int
  /// Once the keys, labels and attributes of a frame have so many bytes, the next entry goes into a
  /// new frame.
  private let headsTarget: Int
  /// The most raw bytes of a block; a longer value has several blocks of its own.
  private let mostInBlock: Int
  private(set) var heads: HeadsBuilder
  /// Numbers of the sets in the frame's table, by the ids of the caller (of the index).
  private var labelSetIndex = IDMap()
  package private(set) var values: [UInt8] = []
  /// Where each entry's value ends in `values`.
  private var valueEnds: [UInt32] = []
  /// Raw length of every closed block.
  package private(set) var blockLengths: [Int] = []
  /// Raw bytes in the block that values go into now.
  private var openBlock = 0
  package private(set) var places: [ValuePlace] = []
  /// Offers closed blocks to a thread that helps to compress them; nil without one.
  private(set) var packing: FramePacking?
  /// Whether any entry is a record of the engine's own.
  private(set) var holdsRecords = false

  /// - Parameter packing: gets blocks as they become whole.
  init(packing: FramePacking?) {
    self.init()
    self.packing = packing
  }

  /// - Parameter nextSequence: for a frame that gets no entries, and only carries `durableThrough`
  ///   forward.
  package init(
    hasExplicitSequences: Bool = false, isHistory: Bool = false,
    blockTarget: Int = Limits.blockBytes, nextSequence: UInt64 = 0
  ) {
    firstSequence = nextSequence
    self.hasExplicitSequences = hasExplicitSequences
    heads = HeadsBuilder(hasExplicitSequences: hasExplicitSequences)
    self.isHistory = isHistory
    mostInBlock = isHistory ? Limits.historyBlockBytes : Limits.blockBytes
    headsTarget =
      isHistory
      ? Limits.historyHeadsTarget
      : hasExplicitSequences ? Limits.compactedHeadsTarget : Limits.frameHeadsTarget
    self.blockTarget = min(blockTarget, mostInBlock)
  }

  package var isEmpty: Bool { entryCount == 0 }
  /// An upper bound for the size of the frame on disk, without its header and its block table.
  package var rawBytes: Int { heads.mostBytes + values.count }
  /// Whether the next entry should go into another frame. A stored property: writers ask before
  /// each entry, and Swift copied the whole frame out of its array to call a computed one.
  package private(set) var isFull = false

  /// Whether a value of so many bytes should go into another frame: history fills whole blocks.
  package func isFull(expecting length: Int) -> Bool {
    isFull || (isHistory && !isEmpty && values.count + length > blockTarget)
  }

  /// Marks the last entry as the last of its batch.
  mutating func endBatch() { heads.endBatch() }

  /// An entry's fields, as the builder takes them.
  package struct Entry {
    package var kind: EntryKind
    package var endsBatch: Bool
    package var sequence: UInt64
    /// The caller's id of the entry's set of labels; 0 is the empty set.
    package var labelSetID: UInt32 = 0
    package var previous: UInt64 = 0
    package var valueSequence: UInt64 = 0
    package var commitTime: UInt64
    package var created: UInt64 = 0

    package init(kind: EntryKind, endsBatch: Bool, sequence: UInt64, commitTime: UInt64) {
      self.kind = kind
      self.endsBatch = endsBatch
      self.sequence = sequence
      self.commitTime = commitTime
    }
  }

  /// Adds an entry.
  /// - Parameter labels: asked for the labels when the frame has not seen the set's id yet.
  package mutating func add<E: Error>(
    _ entry: Entry, key: RawSpan, value: RawSpan?, attributes: RawSpan,
    labels: (UInt32) throws(E) -> [[UInt8]]
  ) throws(E) {
    if needsLabels(ofSet: entry.labelSetID) {
      let set = try labels(entry.labelSetID)
      let number = heads.addLabelSet { writer in
        writer.varint(set.count)
        for label in set { writer.blob(label) }
      }
      labelSetIndex.insert(entry.labelSetID, number)
    }
    append(entry, key: key, value: value, attributes: attributes)
  }

  /// Whether ``addLabelSet(_:_:_:)`` must come before an entry with this set.
  @inline(__always)
  func needsLabels(ofSet id: UInt32) -> Bool { id != 0 && labelSetIndex[id] == nil }

  /// Adds one of a batch's sets to the frame's table; once for each id.
  mutating func addLabelSet(_ id: UInt32, _ labels: BatchLabels, _ index: Int) {
    labelSetIndex.insert(id, heads.addLabelSet { labels.write(index, into: &$0) })
  }

  /// Adds an entry whose set of labels is in the frame's table.
  mutating func append(_ entry: Entry, key: RawSpan, value: RawSpan?, attributes: RawSpan) {
    if isEmpty { firstSequence = entry.sequence }
    if entry.kind == .record { holdsRecords = true }
    heads.append(
      entry, labelSet: entry.labelSetID == 0 ? nil : labelSetIndex[entry.labelSetID], key: key,
      valueLength: value?.byteCount, attributes: attributes)
    lastSequence = max(lastSequence, entry.sequence)
    place(value)
    let headsBytes = heads.textBytes + heads.labelBytes + entryCount * Limits.entryOverheadBytes
    isFull =
      headsBytes >= headsTarget || values.count >= Limits.frameValuesTarget
      || entryCount >= Limits.frameEntries - 1
  }

  /// Takes over, while empty, the memory for values of a written frame, unless that is large.
  mutating func takeMemory(of written: inout FrameBuilder) {
    guard written.values.capacity <= 4 * Limits.frameValuesTarget else { return }
    swap(&values, &written.values)
    values.removeAll(keepingCapacity: true)
  }

  /// Where the value of the n-th entry stands in `values`.
  package func valueRange(of entry: Int) -> Range<Int> {
    (entry == 0 ? 0 : Int(valueEnds[entry - 1]))..<Int(valueEnds[entry])
  }

  /// Appends a value to the stream and cuts blocks: a value lies in one block, unless it is
  /// longer than a block; then it has a run of blocks of its own.
  private mutating func place(_ value: RawSpan?) {
    let length = value?.byteCount ?? 0
    // An empty value closes no block: `LocatorTable.places` works the places out the same way.
    if length > 0, openBlock > 0, openBlock + length > blockTarget { closeBlock() }
    places.append(
      ValuePlace(block: UInt32(blockLengths.count), position: UInt32(truncatingIfNeeded: openBlock))
    )
    valueEnds.append(UInt32(values.count + length))
    guard let value, length > 0 else { return }
    values.append(copying: value)
    openBlock += length
    // Only a value that began this block can have made it too long; cut it into blocks of its own.
    guard openBlock > mostInBlock else { return }
    while openBlock > 0 {
      let part = min(openBlock, mostInBlock)
      blockLengths.append(part)
      openBlock -= part
    }
    packing?.offer(values, blockLengths)
  }

  /// Ends the block that values go into.
  mutating func closeBlock() {
    guard openBlock > 0 else { return }
    blockLengths.append(openBlock)
    openBlock = 0
    packing?.offer(values, blockLengths)
  }
}
