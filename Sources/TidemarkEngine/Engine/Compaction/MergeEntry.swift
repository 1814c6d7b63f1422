/// An entry on its way through the merge of a compaction, outside of any frame: the fields of its
/// header. Encoded, it has the key, attributes and value behind them:
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
/// A touch renews an older put without rewriting its value. Encoded entries stand in memory and in
/// temporary files only, so that the encoding may change at any time.
struct MergeEntry: Sendable {
  static let headBytes = 56
  private static let emptyHead = [UInt8](repeating: 0, count: headBytes)
  private static let endsBatchBit: UInt8 = 0x10
  private static let valueFlag: UInt8 = 1
  private static let historyFlag: UInt8 = 2

  /// Its offsets are those of its frame or, for `keyPlace` and the like, of the encoded bytes.
  var head: EntryHead
  /// A number of `LabelSets`; that of the head counts in its own frame alone.
  var labelSet: UInt32
  /// Whether no read of the newest state needs it.
  var isHistory = false

  var keyPlace: Range<Int> { head.keyStart..<(head.keyStart + head.keyLength) }
  var attributesPlace: Range<Int> {
    head.attributesStart..<(head.attributesStart + head.attributesLength)
  }
  var valuePlace: Range<Int> { head.valueOffset..<(head.valueOffset + head.valueLength) }

  var byteCount: Int { Self.headBytes + head.keyLength + head.attributesLength + head.valueLength }

  /// Appends the fields; the caller appends key, attributes and value, in this order.
  func encode(to bytes: inout [UInt8]) {
    let start = bytes.count
    bytes.append(contentsOf: Self.emptyHead)
    let entry = self
    bytes.withMutableRawSpan { bytes in
      let head = entry.head
      bytes.put(UInt32(entry.byteCount), at: start)
      bytes.put(head.kind.rawValue | (head.endsBatch ? Self.endsBatchBit : 0), at: start + 4)
      bytes.put(
        (head.hasValue ? Self.valueFlag : 0) | (entry.isHistory ? Self.historyFlag : 0),
        at: start + 5)
      bytes.put(UInt16(head.keyLength), at: start + 6)
      bytes.put(head.sequence, at: start + 8)
      bytes.put(head.commitTime, at: start + 16)
      bytes.put(head.previous, at: start + 24)
      bytes.put(head.valueSequence, at: start + 32)
      bytes.put(head.created, at: start + 40)
      bytes.put(entry.labelSet, at: start + 48)
      bytes.put(UInt16(head.attributesLength), at: start + 52)
    }
  }
}

extension MergeEntry {
  /// Reads the fields of an entry whose bytes begin at `offset`, and checks that all are there.
  init(_ bytes: RawSpan, at offset: Int) throws(FormatError) {
    let length = Int(try bytes.u32(at: offset))
    let first = try bytes.u8(at: offset + 4)
    guard let kind = EntryKind(rawValue: first & 0x0f) else {
      throw FormatError("unknown kind of entry in a run")
    }
    let flags = try bytes.u8(at: offset + 5)
    let key = (start: offset + Self.headBytes, length: Int(try bytes.u16(at: offset + 6)))
    let attributesStart = key.start + key.length
    let attributesLength = Int(try bytes.u16(at: offset + 52))
    let valueStart = attributesStart + attributesLength
    head = EntryHead(
      kind: kind, endsBatch: first & Self.endsBatchBit != 0,
      sequence: try bytes.u64(at: offset + 8), keyStart: key.start, keyLength: key.length,
      labelSet: -1, hasValue: flags & Self.valueFlag != 0, valueOffset: valueStart,
      valueLength: offset + length - valueStart, previous: try bytes.u64(at: offset + 24),
      valueSequence: try bytes.u64(at: offset + 32), commitTime: try bytes.u64(at: offset + 16),
      created: try bytes.u64(at: offset + 40), attributesStart: attributesStart,
      attributesLength: attributesLength)
    labelSet = try bytes.u32(at: offset + 48)
    isHistory = flags & Self.historyFlag != 0
    guard head.valueLength >= 0, length <= bytes.byteCount - offset else {
      throw FormatError("an entry of a run ends too early")
    }
  }
}

/// The sets of labels that a compaction has met, by number; 0 is empty. Several threads use it.
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

  func labels(_ number: UInt32) -> [[UInt8]] {
    state.withLock { state in
      number > 0 && Int(number) <= state.sets.count ? state.sets[Int(number) - 1] : []
    }
  }

  /// The numbers for the label sets of one frame, each looked up once.
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
