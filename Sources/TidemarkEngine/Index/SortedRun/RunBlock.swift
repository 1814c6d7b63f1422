/// A block of a sorted run: columns of up to 16 slots, then the keys in the
/// same order. A key is stored as the number of bytes it shares with the key before, and the
/// rest of its bytes. See ``RunLayout``.
///
/// Any bytes may stand here: walking them ends and either yields keys of 1 to 65,535 bytes or
/// throws.
struct RunBlock: ~Escapable {
  let bytes: RawSpan
  /// How many keys there are.
  let count: Int

  /// The least sequence, and above its 48 bits the bits of a sequence and of a label set.
  private let form: UInt64

  @_lifetime(copy bytes)
  @inline(__always)
  init(_ bytes: RawSpan, count: Int) throws(FormatError) {
    self.bytes = bytes
    self.count = count
    form = try bytes.u64(at: 0)
    guard sequenceBits <= 48, labelSetBits <= 32, keysOffset <= bytes.byteCount else {
      throw FormatError("columns of a block out of bounds")
    }
  }

  private var sequenceBits: Int { Int(truncatingIfNeeded: form &>> 48) & 0xff }
  private var labelSetBits: Int { Int(truncatingIfNeeded: form &>> 56) }
  private var labelSetsOffset: Int { 8 &+ (count &* sequenceBits &+ 7) &>> 3 }
  private var sizesOffset: Int { labelSetsOffset &+ (count &* labelSetBits &+ 7) &>> 3 }
  /// Where the keys begin.
  fileprivate var keysOffset: Int { sizesOffset &+ count }

  @inline(__always)
  func slot(_ position: Int) throws(FormatError) -> Slot {
    let more = try PackedBits.number(position, width: sequenceBits, from: 8, in: bytes)
    let sequence = form & Slot.maxSequence &+ more
    guard sequence <= Slot.maxSequence else { throw FormatError("a sequence out of bounds") }
    let labelSet = try PackedBits.number(
      position, width: labelSetBits, from: labelSetsOffset, in: bytes)
    return Slot(
      sequence: sequence, labelSet: UInt32(truncatingIfNeeded: labelSet),
      size: SizeClass(rawValue: try bytes.u8(at: sizesOffset &+ position)))
  }

  /// A walk that begins with the first key.
  var walk: Walk {
    @_lifetime(copy self)
    get { Walk(bytes, at: keysOffset, previousLength: nil) }
  }

  /// A walk that goes on where another ended, behind a key of `previousLength` bytes.
  @_lifetime(copy self)
  func walk(from offset: Int, previousLength: Int) -> Walk {
    Walk(bytes, at: offset, previousLength: previousLength)
  }

  /// Steps through the coded keys.
  struct Walk: ~Escapable {
    private var reader: ByteReader
    private var isFirst: Bool
    /// How many bytes the key has in common with the one before.
    private(set) var shared = 0
    /// Where the rest of the key's bytes stand in the block.
    private(set) var restOffset = 0
    private(set) var restCount = 0

    @_lifetime(copy bytes)
    fileprivate init(_ bytes: RawSpan, at offset: Int, previousLength: Int?) {
      reader = ByteReader(bytes, at: offset)
      isFirst = previousLength == nil
      shared = previousLength ?? 0
    }

    var length: Int { shared + restCount }

    /// The bytes that the key does not share with the one before.
    var rest: RawSpan {
      @_lifetime(copy self)
      get { reader.bytes.extracting(restOffset..<(restOffset + restCount)) }
    }

    /// Where the next key begins in the block.
    var end: Int { reader.offset }

    @inline(__always)
    mutating func next() throws(FormatError) {
      let before = length
      shared = isFirst ? 0 : try reader.varint(atMost: before)
      isFirst = false
      restCount = try reader.varint(atMost: Limits.keyBytes - shared)
      guard shared + restCount > 0 else { throw FormatError("empty key") }
      restOffset = try reader.skip(restCount)
    }
  }

  func holds(_ key: RawSpan, at position: Int) throws(FormatError) -> Bool {
    var keys = Match(self)
    for _ in 0...position { _ = try keys.next(key) }
    return keys.isEqual(to: key)
  }

  /// The position of a key; nil when it is not here.
  func position(of key: RawSpan) throws(FormatError) -> Int? {
    var keys = Match(self)
    for position in 0..<count {
      // No later key is the wanted one: they ascend.
      guard try keys.next(key) else { return nil }
      if keys.isEqual(to: key) { return position }
    }
    return nil
  }

  /// How many keys of the block lie before `cut`.
  func rank(_ cut: KeyCut) throws(FormatError) -> Int {
    let key = cut.key.rawSpan
    var walk = self.walk
    var matched = 0
    var order = 0
    for position in 0..<count {
      try walk.next()
      // Else the key differs from the wanted one at the same byte as the key before: same `order`.
      if walk.shared <= matched {
        matched = walk.shared
        let wanted = key.extracting(droppingFirst: matched)
        let rest = walk.rest
        let more = rest.commonPrefix(with: wanted)
        order = Self.order(rest, wanted, more)
        matched += more
      }
      if cut.isBefore(order: order) { return position }
    }
    return count
  }

  /// How two keys compare, given what is left of both and how many bytes of that they share.
  private static func order(_ rest: RawSpan, _ wanted: RawSpan, _ common: Int) -> Int {
    guard common < rest.byteCount, common < wanted.byteCount else {
      return rest.byteCount - wanted.byteCount
    }
    return rest.extracting(droppingFirst: common)
      .compare(to: wanted.extracting(droppingFirst: common))
  }

  /// Follows how many bytes each key has in common with a wanted one; keys are not put together.
  private struct Match: ~Escapable {
    private let bytes: RawSpan
    private var offset: Int
    /// Of the present key: its length, and how many bytes it has in common with the wanted one.
    private var length = 0
    private var matched = 0
    private var isFirst = true

    @_lifetime(copy block)
    @inline(__always)
    init(_ block: RunBlock) {
      bytes = block.bytes
      offset = block.keysOffset
    }

    /// Goes to the next key.
    /// - Returns: false if the key surely sorts behind the wanted one; true tells nothing. False
    ///   means that the key before, which sorts before the wanted one, has more in common with the
    ///   wanted key than with this one: so this key is greater where those two are still equal.
    @inline(__always)
    mutating func next(_ wanted: RawSpan) throws(FormatError) -> Bool {
      let shared = isFirst ? 0 : try bytes.shortNumber(&offset)
      isFirst = false
      let rest = try bytes.shortNumber(&offset)
      guard shared <= length, rest <= bytes.byteCount - offset else {
        throw FormatError("key out of bounds")
      }
      let mayBeAtOrBefore = shared >= matched
      if shared <= matched {
        matched = shared + bytes.commonPrefix(offset, rest, with: wanted, from: shared)
      }
      length = shared + rest
      offset += rest
      return mayBeAtOrBefore
    }

    @inline(__always)
    func isEqual(to wanted: RawSpan) -> Bool {
      matched == wanted.byteCount && length == wanted.byteCount
    }
  }
}

extension RawSpan {
  /// A varint that is nearly always one byte long.
  @inline(__always)
  fileprivate func shortNumber(_ offset: inout Int) throws(FormatError) -> Int {
    let byte = try u8(at: offset)
    offset += 1
    if byte < 0x80 { return Int(byte) }
    offset -= 1
    var reader = ByteReader(self, at: offset)
    let value = try reader.varint(atMost: Limits.keyBytes)
    offset = reader.offset
    return value
  }
}
