/// Entries of a compacted segment in order of sequence, as many as a window holds, gathered in one
/// walk over the segment's frames.
///
/// Heads are copied together, so that the window does not hold every frame of the segment.
struct SequenceWindow {
  /// Fewer entries are never gathered, unless there are no more; and more never.
  private static let leastEntries = 65_536
  private static let mostEntries = 1 << 18
  /// A long segment is walked about so many times until all of it was gathered.
  private static let walks = 16
  /// Entries of a long segment that are gathered while one is found by itself.
  private static let gatheredPerFound = 400

  private let records: [FrameRecord]
  private let frames: FrameReader
  private let first: UInt64
  /// The last sequence that it holds, or passes over.
  private(set) var last: UInt64
  private let includesRecords: Bool
  private let most: Int
  private var heads: [EntryHead] = []
  private var bytes: [UInt8] = []
  private var labelSets: [[[UInt8]]] = []
  private var lastFront: DecodedFront?

  /// - Parameter most: how many it holds; nil for what suits the segment.
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

  /// Whether it takes less to look for each entry of a range than to walk over all frames.
  static func isBestFoundSingly(
    _ range: ClosedRange<UInt64>, in segment: Segment
  ) throws(TidemarkError) -> Bool {
    let width = range.upperBound - range.lowerBound
    guard width < 1 << 16 else { return false }
    return Int(width) * gatheredPerFound < entryCount(try segment.frames())
  }

  /// Reads the segment, and keeps the entries of the lowest sequences.
  mutating func gather() throws(TidemarkError) {
    for record in records {
      let front = try frames.front(record)
      var sets: [Int: Int] = [:]
      for head in front.entries where head.sequence >= first && head.sequence <= last {
        if includesRecords || LogCursor.isShown(head, front) { add(head, of: front, &sets) }
      }
      if heads.count >= 2 * most { cut() }
    }
    if heads.count > most { cut() }
  }

  private mutating func add(
    _ head: EntryHead, of front: DecodedFront, _ sets: inout [Int: Int]
  ) {
    lastFront = front
    var head = head
    if head.labelSet >= 0 {
      if let known = sets[head.labelSet] {
        head.labelSet = known
      } else {
        sets[head.labelSet] = labelSets.count
        labelSets.append(front.labels(of: head))
        head.labelSet = labelSets.count - 1
      }
    }
    let key = bytes.count
    bytes.append(copying: front.key(of: head))
    let attributes = bytes.count
    bytes.append(copying: front.attributeBytes(of: head))
    head.keyStart = key
    head.attributesStart = attributes
    heads.append(head)
  }

  /// Lets go of the entries of the highest sequences.
  private mutating func cut() {
    heads.sort { $0.sequence < $1.sequence }
    last = heads[most - 1].sequence
    let (all, keys, sets) = (heads.prefix(most), bytes, labelSets)
    heads = []
    bytes = []
    labelSets = []
    var numbers: [Int: Int] = [:]
    for var head in all {
      let key = bytes.count
      bytes.append(contentsOf: keys[head.keyStart..<(head.keyStart + head.keyLength)])
      let attributes = bytes.count
      bytes.append(
        contentsOf: keys[head.attributesStart..<(head.attributesStart + head.attributesLength)])
      head.keyStart = key
      head.attributesStart = attributes
      if head.labelSet >= 0 {
        let number = numbers[head.labelSet] ?? labelSets.count
        if number == labelSets.count {
          labelSets.append(sets[head.labelSet])
          numbers[head.labelSet] = number
        }
        head.labelSet = number
      }
      heads.append(head)
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
