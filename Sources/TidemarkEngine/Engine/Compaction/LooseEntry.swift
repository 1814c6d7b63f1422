/// An entry on its way through a merge, without a frame around it: the fields of its head.
///
/// ```
///  0 u32 length of the whole           16 u64 commit time
///  4 u8  kind, end of batch (bit 4)    24 u64 previous sequence
///  5 u8  flags: 1 = has a value,       32 u64 sequence of a touch's put
///        2 = history                   40 u64 created
///  6 u16 key length                    48 u32 label set, a number of `LabelSets`
///  8 u64 sequence                      52 u16 length of the attributes, then u16 zero
/// 56 key, attributes, value
/// ```
/// The bytes are those of memory and of files that no other process reads.
struct LooseEntry: Sendable {
  static let headBytes = 56
  private static let emptyHead = [UInt8](repeating: 0, count: headBytes)
  private static let endsBatchBit: UInt8 = 0x10
  private static let valueFlag: UInt8 = 1
  private static let historyFlag: UInt8 = 2

  var kind: EntryKind
  var endsBatch: Bool
  var hasValue: Bool
  var sequence: UInt64
  var commitTime: UInt64
  var previous: UInt64
  var valueSequence: UInt64
  var created: UInt64
  var labelSet: UInt32
  var keyLength: Int
  var attributesLength: Int
  var valueLength: Int
  /// Whether no read of the newest state needs it.
  var isHistory = false

  init(_ head: EntryHead, labelSet: UInt32) {
    kind = head.kind
    endsBatch = head.endsBatch
    hasValue = head.hasValue
    sequence = head.sequence
    commitTime = head.commitTime
    previous = head.previous
    valueSequence = head.valueSequence
    created = head.created
    self.labelSet = labelSet
    keyLength = head.keyLength
    attributesLength = head.attributesLength
    valueLength = head.hasValue ? head.valueLength : 0
  }

  /// Length of all of its bytes.
  var byteCount: Int { Self.headBytes + keyLength + attributesLength + valueLength }

  /// Appends the fields; key, attributes and value are the caller's to append.
  func encode(to bytes: inout [UInt8]) {
    let start = bytes.count
    bytes.append(contentsOf: Self.emptyHead)
    let entry = self
    bytes.withMutableRawSpan { bytes in
      bytes.put(UInt32(entry.byteCount), at: start)
      bytes.put(entry.kind.rawValue | (entry.endsBatch ? Self.endsBatchBit : 0), at: start + 4)
      bytes.put(
        (entry.hasValue ? Self.valueFlag : 0) | (entry.isHistory ? Self.historyFlag : 0),
        at: start + 5)
      bytes.put(UInt16(entry.keyLength), at: start + 6)
      bytes.put(entry.sequence, at: start + 8)
      bytes.put(entry.commitTime, at: start + 16)
      bytes.put(entry.previous, at: start + 24)
      bytes.put(entry.valueSequence, at: start + 32)
      bytes.put(entry.created, at: start + 40)
      bytes.put(entry.labelSet, at: start + 48)
      bytes.put(UInt16(entry.attributesLength), at: start + 52)
    }
  }

  /// Reads the fields of an entry whose bytes begin at `offset`, and checks that all are there.
  init(_ bytes: RawSpan, at offset: Int) throws(FormatError) {
    let length = Int(try bytes.u32(at: offset))
    let first = try bytes.u8(at: offset + 4)
    guard let kind = EntryKind(rawValue: first & 0x0f) else {
      throw FormatError("unknown kind of entry in a run")
    }
    self.kind = kind
    endsBatch = first & Self.endsBatchBit != 0
    let flags = try bytes.u8(at: offset + 5)
    hasValue = flags & Self.valueFlag != 0
    isHistory = flags & Self.historyFlag != 0
    keyLength = Int(try bytes.u16(at: offset + 6))
    sequence = try bytes.u64(at: offset + 8)
    commitTime = try bytes.u64(at: offset + 16)
    previous = try bytes.u64(at: offset + 24)
    valueSequence = try bytes.u64(at: offset + 32)
    created = try bytes.u64(at: offset + 40)
    labelSet = try bytes.u32(at: offset + 48)
    attributesLength = Int(try bytes.u16(at: offset + 52))
    valueLength = length - Self.headBytes - keyLength - attributesLength
    guard valueLength >= 0, length <= bytes.byteCount - offset else {
      throw FormatError("an entry of a run ends too early")
    }
  }

  /// The entry as it is written to a segment; its labels are given apart.
  var entry: FrameBuilder.Entry {
    var entry = FrameBuilder.Entry(
      kind: kind, endsBatch: endsBatch, sequence: sequence, commitTime: commitTime)
    entry.previous = previous
    entry.valueSequence = valueSequence
    entry.created = created
    return entry
  }

  /// Where the key stands in bytes in which the entry begins at `start`.
  func keyPlace(from start: Int) -> Range<Int> {
    (start + Self.headBytes)..<(start + Self.headBytes + keyLength)
  }
  func attributesPlace(from start: Int) -> Range<Int> {
    let key = keyPlace(from: start)
    return key.upperBound..<(key.upperBound + attributesLength)
  }
  func valuePlace(from start: Int) -> Range<Int> {
    attributesPlace(from: start).upperBound..<(start + byteCount)
  }
}

/// The sets of labels that a compaction has met, by number; 0 is the empty set.
final class LabelSets: Sendable {
  private struct State {
    var sets: [[[UInt8]]] = []
    var numbers: [[[UInt8]]: UInt32] = [:]
  }

  private let state = Lock(State())

  /// The number of a set.
  /// - Parameter labels: in byte order, without repetition.
  func number(of labels: [[UInt8]]) -> UInt32 {
    guard !labels.isEmpty else { return 0 }
    return state.withLock { state in
      if let known = state.numbers[labels] { return known }
      state.sets.append(labels)
      let number = UInt32(state.sets.count)
      state.numbers[labels] = number
      return number
    }
  }

  /// The labels of a set.
  func labels(_ number: UInt32) -> [[UInt8]] {
    state.withLock { state in
      number > 0 && Int(number) <= state.sets.count ? state.sets[Int(number) - 1] : []
    }
  }

  /// Numbers of the sets of one frame, each worked out once.
  struct OfFrame {
    private var numbers: [Int: UInt32] = [:]

    mutating func number(of head: EntryHead, in front: DecodedFront, _ sets: LabelSets) -> UInt32 {
      guard head.labelSet >= 0 else { return 0 }
      if let known = numbers[head.labelSet] { return known }
      let number = sets.number(of: front.labels(of: head))
      numbers[head.labelSet] = number
      return number
    }
  }
}
