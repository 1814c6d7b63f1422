/// The entries of the lowest sequences of a range, in order of sequence, gathered in a walk over a
/// compacted segment, which is sorted by key. Entry headers ("heads") are copied, no frame is kept.
struct SequenceWindow {
  /// The bounds of a window's size, unless the caller gives one.
  private static let leastEntries = 65_536
  private static let mostEntries = 1 << 18
  /// Between these bounds a window is this fraction of a segment, which is walked as often.
  private static let walks = 16
  /// To find one entry by the locator takes as long as to walk over so many.
  private static let gatheredPerFound = 400
  private let records: [FrameRecord]
  private let frames: FrameReader
  private let first: UInt64
  /// All entries of the range up to this sequence are in the window. Lowered while it is gathered.
  private(set) var last: UInt64
  private let includesRecords: Bool
  private let most: Int
  /// Copies of entry headers, whose places of keys, attributes and label sets are in the next two.
  private var heads: [EntryHead] = []
  private var bytes: [UInt8] = []
  private var labelSets: [[[UInt8]]] = []
  /// A decoded frame of the segment, whose header stands for all in `entries`.
  private var lastFront: DecodedFront?

  /// - Parameter most: most entries; nil for what suits the segment.
  init(
    _ segment: Segment, _ range: ClosedRange<UInt64>, includesRecords: Bool, most: Int? = nil
  ) throws(TidemarkError) {
    records = try segment.frames()
    frames = try FrameReader(segment, windowBytes: Limits.replayWindowBytes)
    first = range.lowerBound
    last = range.upperBound
    self.includesRecords = includesRecords
    let entries = Self.entryCount(records)
    self.most = most ?? min(max(Self.leastEntries, entries / Self.walks), Self.mostEntries)
  }

  private static func entryCount(_ records: [FrameRecord]) -> Int {
    records.reduce(0) { $0 + Int($1.entryCount) }
  }

  /// Whether to look for each entry of a range takes less time than to walk over all frames.
  static func isBestFoundSingly(
    _ range: ClosedRange<UInt64>, in segment: Segment
  ) throws(TidemarkError) -> Bool {
    let width = range.upperBound - range.lowerBound
    // Bounds the product below.
    guard width < 1 << 16 else { return false }
    return Int(width) * gatheredPerFound < entryCount(try segment.frames())
  }

  /// Reads all frames, and keeps the `most` entries of the lowest sequences.
  mutating func gather() throws(TidemarkError) {
    for record in records {
      let front = try frames.front(record)
      var sets: [Int: Int] = [:]
      for head in front.entries where head.sequence >= first && head.sequence <= last {
        guard includesRecords || LogCursor.isShown(head, front) else { continue }
        lastFront = front
        add(head, key: front.key(of: head), attributes: front.attributeBytes(of: head), &sets) {
          front.labels(of: head)
        }
      }
      // At twice the size, so that the sorting is paid for by as many entries.
      if heads.count >= 2 * most { cut() }
    }
    if heads.count > most { cut() }
  }

  /// Adds a copy of an entry header.
  /// - Parameter sets: from the label sets of the frame, or of the window before, to those of this
  ///   window.
  private mutating func add(
    _ head: EntryHead, key: RawSpan, attributes: RawSpan, _ sets: inout [Int: Int],
    _ labels: () -> [[UInt8]]
  ) {
    var head = head
    if head.labelSet >= 0 {
      let number = sets[head.labelSet] ?? labelSets.count
      if number == labelSets.count {
        labelSets.append(labels())
        sets[head.labelSet] = number
      }
      head.labelSet = number
    }
    head.keyStart = bytes.count
    bytes.append(copying: key)
    head.attributesStart = bytes.count
    bytes.append(copying: attributes)
    heads.append(head)
  }

  /// Drops the entries of the highest sequences: they are of a later window, above the new `last`.
  private mutating func cut() {
    heads.sort { $0.sequence < $1.sequence }
    last = heads[most - 1].sequence
    let (all, old, oldSets) = (heads.prefix(most), bytes, labelSets)
    (heads, bytes, labelSets) = ([], [], [])
    var sets: [Int: Int] = [:]
    for head in all {
      let attributesEnd = head.attributesStart + head.attributesLength
      add(
        head, key: old.rawSpan.extracting(head.keyStart..<(head.keyStart + head.keyLength)),
        attributes: old.rawSpan.extracting(head.attributesStart..<attributesEnd), &sets
      ) { oldSets[head.labelSet] }
    }
  }

  /// The gathered entries, in order of sequence.
  mutating func entries() -> [LogEntry] {
    guard let lastFront else { return [] }
    heads.sort { $0.sequence < $1.sequence }
    let front = DecodedFront(gathering: heads, heads: bytes, labelSets: labelSets, from: lastFront)
    return heads.map { LogEntry(segment: frames.segment, front: front, head: $0) }
  }
}
