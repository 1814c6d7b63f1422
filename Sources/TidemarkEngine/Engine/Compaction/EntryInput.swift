/// A sorted source of a merge, which stands at one entry after the first `advance`. Attributes and
/// value of the entry are read when they are asked for, up to the next `advance`.
class EntryInput {
  fileprivate(set) var entry: MergeEntry
  fileprivate(set) var key: [UInt8] = []
  /// The first 8 bytes of the key, big-endian: where two differ they sort like the keys.
  fileprivate(set) var word: UInt64 = 0

  fileprivate init() { entry = MergeEntry(head: EntryHead(sequence: 0), labelSet: 0) }

  /// Goes to the next entry.
  /// - Returns: false at the end.
  func advance() throws(TidemarkError) -> Bool { false }

  /// Appends the entry's attributes, as encoded.
  func appendAttributes(to bytes: inout [UInt8]) {}

  /// Whether the entry says that it is of cached data; a touch of a cached put need not.
  var isCached: Bool { false }

  func appendValue(to bytes: inout [UInt8]) throws(TidemarkError) {}

  /// The error for an entry that contradicts its source.
  func damage(_ reason: String) -> TidemarkError { TidemarkError(.damaged, reason) }

  fileprivate func setKey(_ bytes: RawSpan) {
    key.removeAll(keepingCapacity: true)
    key.append(copying: bytes)
    word = bytes.bigEndianWord(at: 0)
  }

  /// Whether its entry comes before that of another input: by key, then by sequence.
  @inline(__always)
  final func precedes(_ other: EntryInput) -> Bool {
    if word != other.word { return word < other.word }
    let order = key.rawSpan.compare(to: other.key.rawSpan)
    if order == 0, PlantedBug.isOn(.mergedOutOfOrder) { return false }
    return order != 0 ? order < 0 : entry.head.sequence < other.entry.head.sequence
  }

  final func attributes() throws(TidemarkError) -> EntryAttributes {
    var bytes: [UInt8] = []
    appendAttributes(to: &bytes)
    guard !bytes.isEmpty else { return EntryAttributes() }
    do { return try EntryAttributes(decoding: bytes.rawSpan) } catch {
      throw TidemarkError(.damaged, "an entry's attributes cannot be read", cause: error)
    }
  }
}

/// Frames of a segment whose entries are sorted by key and sequence: the history (superseded
/// entries) of a compacted segment, its other entries, or the chain of an appended one.
final class SegmentInput: EntryInput {
  private let records: [FrameRecord]
  private let labels: LabelSets
  private let shouldStop: () throws(TidemarkError) -> Void
  private var frames: FrameReader
  private var nextFrame = 0
  private var front: DecodedFront?
  private var sets = LabelSets.OfFrame()
  private var position = 0

  init(
    _ segment: Segment, _ records: [FrameRecord], labels: LabelSets,
    shouldStop: @escaping () throws(TidemarkError) -> Void
  ) throws(TidemarkError) {
    self.records = records
    frames = try FrameReader(segment, windowBytes: 512 << 10)
    self.labels = labels
    self.shouldStop = shouldStop
    super.init()
  }

  override func advance() throws(TidemarkError) -> Bool {
    while true {
      if let front, position < front.entries.count {
        // Compared with the entry before: a merge of unsorted input gives an unsorted segment.
        let (word, sequence) = (word, entry.head.sequence)
        let head = front.entries[position]
        position += 1
        entry = MergeEntry(head: head, labelSet: sets.number(of: head, in: front, labels))
        let bytes = front.key(of: head)
        let order = word < bytes.bigEndianWord(at: 0) ? -1 : key.rawSpan.compare(to: bytes)
        guard order < 0 || order == 0 && sequence < head.sequence else {
          throw damage("entries out of order")
        }
        setKey(bytes)
        return true
      }
      guard nextFrame < records.count else { return false }
      try shouldStop()
      front = try frames.front(records[nextFrame])
      sets = LabelSets.OfFrame()
      position = 0
      nextFrame += 1
    }
  }

  override func damage(_ reason: String) -> TidemarkError {
    frames.segment.damage(
      .format(FormatError(reason)), offset: front?.offset ?? 0,
      sequences: entry.head.sequence...entry.head.sequence)
  }

  override func appendAttributes(to bytes: inout [UInt8]) {
    if let front { bytes.append(copying: front.attributeBytes(of: entry.head)) }
  }

  override var isCached: Bool { front?.isCached(entry.head) ?? false }

  override func appendValue(to bytes: inout [UInt8]) throws(TidemarkError) {
    if let front { try frames.appendValue(of: entry.head, in: front, to: &bytes) }
  }
}

/// The frames of an appended segment whose keys ascend from each to the next, as a load in the
/// order of keys writes them: they can be merged from where they stand.
struct FrameChain {
  private(set) var frames: [FrameRecord] = []
  /// Raw bytes of their values.
  private(set) var rawBytes = 0
  private var last: [UInt8] = []
  /// The entries of smaller frames are sorted in memory instead: that costs less than to decode the
  /// frame once more when the segments are merged.
  private static let leastEntries = 16
  /// Whether the chain takes frames. Closed once a merge reads many segments at a time, since each
  /// of them has a read buffer of its own.
  let isOpen: Bool

  init(isOpen: Bool) { self.isOpen = isOpen }

  /// Adds a frame if its keys ascend and come behind those of the chain.
  /// - Returns: whether it was added.
  mutating func takes(_ record: FrameRecord, _ front: DecodedFront) -> Bool {
    guard isOpen, front.entries.count >= Self.leastEntries else { return false }
    var before = last.rawSpan
    for head in front.entries {
      let key = front.key(of: head)
      // Of a key's versions in an appended segment the later one has the higher sequence.
      guard before.compare(to: key) <= 0 else { return false }
      before = key
    }
    last = [UInt8](copying: before)
    frames.append(record)
    rawBytes += front.blocks.reduce(0) { $0 + $1.rawLength }
    return true
  }
}

/// Entries of appended segments, sorted: a window in memory, or a ``MergeRun`` (a window that was
/// written to a temporary file), which is read chunk by chunk.
final class LooseInput: EntryInput {
  private var bytes: [UInt8]
  /// Offsets in `bytes` of a window's entries, sorted; nil for a run, whose entries are in order.
  private let order: [UInt32]?
  private var position = 0
  private var run: MergeRun.Reader?

  init(_ window: SortWindow) {
    bytes = window.bytes
    order = window.sorted()
    super.init()
  }

  init(_ run: MergeRun.Reader) {
    bytes = []
    order = nil
    self.run = run
    super.init()
  }

  override func advance() throws(TidemarkError) -> Bool {
    do throws(LogReadError) {
      let start: Int
      if let order {
        guard position < order.count else { return false }
        start = Int(order[position])
        position += 1
      } else {
        if position >= bytes.count {
          guard let next = try run?.next() else { return false }
          (bytes, position) = (next, 0)
        }
        start = position
      }
      do throws(FormatError) {
        entry = try MergeEntry(bytes.rawSpan, at: start)
      } catch { throw .format(error) }
      if order == nil { position = start + entry.byteCount }
      let bytes = bytes
      setKey(bytes.rawSpan.extracting(entry.keyPlace))
      return true
    } catch {
      switch error {
      case .system(let error): throw TidemarkError(error, while: "reading what is merged")
      case .format(let error):
        // Not `damaged`: a temporary file of the compaction is unreadable, the log itself is whole.
        throw TidemarkError(
          .inputOutput, "what a compaction had set aside cannot be read; compact again",
          cause: error)
      }
    }
  }

  override func appendAttributes(to target: inout [UInt8]) {
    let bytes = bytes
    target.append(copying: bytes.rawSpan.extracting(entry.attributesPlace))
  }

  override var isCached: Bool {
    guard entry.head.attributesLength > 0, entry.head.kind != .delete else { return false }
    let bytes = bytes
    return EntryAttributes.tellCached(bytes.rawSpan.extracting(entry.attributesPlace))
  }

  override func appendValue(to target: inout [UInt8]) {
    let bytes = bytes
    target.append(copying: bytes.rawSpan.extracting(entry.valuePlace))
  }
}

/// Merges sorted inputs by key and sequence.
struct KeyMerge {
  /// A binary heap of the inputs that have an entry: none precedes `inputs[(place - 1) / 2]`.
  private var inputs: [EntryInput] = []

  init(_ inputs: [EntryInput]) throws(TidemarkError) {
    for input in inputs where try input.advance() { self.inputs.append(input) }
    for place in self.inputs.indices.reversed() { sink(place) }
  }

  /// The input whose entry comes next; nil at the end.
  var first: EntryInput? { inputs.first }

  /// Goes to the next entry.
  mutating func advance() throws(TidemarkError) {
    guard let first = inputs.first else { return }
    if try !first.advance() {
      let last = inputs.removeLast()
      if inputs.isEmpty { return }
      inputs[0] = last
    }
    sink(0)
  }

  /// Moves the input at a place down until neither of those below precedes it.
  private mutating func sink(_ from: Int) {
    var place = from
    let input = inputs[from]
    while true {
      var child = 2 * place + 1
      guard child < inputs.count else { break }
      if child + 1 < inputs.count, inputs[child + 1].precedes(inputs[child]) { child += 1 }
      guard inputs[child].precedes(input) else { break }
      inputs[place] = inputs[child]
      place = child
    }
    if place != from { inputs[place] = input }
  }
}
