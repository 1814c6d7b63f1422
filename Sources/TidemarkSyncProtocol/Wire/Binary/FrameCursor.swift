internal import Tidemark
package import TidemarkEngine

/// Writes or reads the fields of a binary message or of a record, one after the other. Each method
/// takes its value `inout`: it writes the value, or reads into it, so that one description serves
/// both.
///
/// Reading is strict: every value has exactly one coding, and others are refused. Every count is
/// compared with the bytes that are left before memory is reserved for it. Keys, which may take
/// more memory than message bytes as they share prefixes, have a budget.
package struct FrameCursor {
  enum Mode {
    case read, write
    /// Writes a page's answer without the entries, which are encoded once for several readers.
    case writeHead
    /// Checks a message: as writing, with every bound, but contents are not copied, and the bytes
    /// that are written are dropped.
    case check
  }

  let mode: Mode
  /// The written bytes.
  package private(set) var out: ByteWriter
  /// The bytes to read, from `offset` to `end`: the end of the message, or of an optional field.
  private let source: [UInt8]
  private var offset = 0
  private var end: Int
  /// Whether unknown optional fields are refused: a request must not be answered as if it lacked
  /// what they ask for.
  private let isRequest: Bool
  /// The last position, relative to which the next is coded.
  var last = FeedPosition.beginning
  /// The last key, whose prefix the next may share.
  private var lastKey: [UInt8] = []
  /// How many bytes of keys the message may still have.
  private var keyBudget: Int
  /// The byte of flags that was read, or the index at which it was written.
  private var flagByte = 0
  /// The optional fields that were written, or that are read from the list but not visited yet.
  private var fields: [Field] = []

  package init(writing capacity: Int, budget: Int = Limits.keyBytes, isHead: Bool = false) {
    (mode, source, end, isRequest) = (isHead ? .writeHead : .write, [], 0, false)
    keyBudget = budget
    out = ByteWriter(capacity: capacity)
  }

  package init(
    reading bytes: [UInt8], isRequest: Bool = false, budget: Int = Limits.keyBytes
  ) {
    (mode, source, end, keyBudget) = (.read, bytes, bytes.count, budget)
    self.isRequest = isRequest
    out = ByteWriter()
  }

  /// For a check.
  init() {
    (mode, source, end, isRequest, keyBudget) = (.check, [], 0, false, .max)
    out = ByteWriter()
  }

  package var isReading: Bool { mode == .read }

  /// How many bytes are left to read; unbounded when writing.
  package var remaining: Int { mode == .read ? end - offset : .max }

  package func finish() throws(FormatError) {
    guard offset == end else { throw FormatError("bytes after the message") }
  }

  // MARK: Values

  package mutating func u8(_ value: inout UInt8) throws(FormatError) {
    guard mode == .read else { return out.u8(value) }
    guard remaining >= 1 else { throw FormatError("ends too early") }
    value = try source.rawSpan.u8(at: offset)
    offset += 1
  }

  package mutating func u64(_ value: inout UInt64) throws(FormatError) {
    guard mode == .read else { return out.u64(value) }
    guard remaining >= 8 else { throw FormatError("ends too early") }
    value = try source.rawSpan.u64(at: offset)
    offset += 8
  }

  @inline(__always)
  package mutating func varint(_ value: inout UInt64) throws(FormatError) {
    guard mode == .read else { return out.varint(value) }
    // Most numbers have one byte.
    if offset < end, source[offset] < 0x80 {
      value = UInt64(source[offset])
      offset += 1
      return
    }
    var reader = ByteReader(source.rawSpan, at: offset)
    value = try reader.varint()
    guard reader.offset <= end else { throw FormatError("ends too early") }
    offset = reader.offset
  }

  package mutating func varint(_ value: inout Int, atMost limit: Int) throws(FormatError) {
    var number = UInt64(truncatingIfNeeded: value)
    try varint(&number)
    guard number <= UInt64(max(limit, 0)) else { throw FormatError("number out of bounds") }
    value = Int(number)
  }

  /// A count of rows that have at least `size` bytes each.
  package mutating func count(
    _ count: inout Int, atMost limit: Int, each size: Int
  ) throws(FormatError) {
    try varint(&count, atMost: limit)
    guard count <= remaining / size else { throw FormatError("ends too early") }
  }

  mutating func raw(_ bytes: inout [UInt8], count: Int) throws(FormatError) {
    guard mode == .read else {
      guard bytes.count == count else { throw FormatError("bytes of another length") }
      if mode != .check { out.raw(bytes) }
      return
    }
    guard count <= remaining else { throw FormatError("ends too early") }
    bytes = [UInt8](copying: try source.rawSpan.slice(offset, count))
    offset += count
  }

  package mutating func bytes(_ bytes: inout [UInt8], atMost limit: Int) throws(FormatError) {
    var count = bytes.count
    try varint(&count, atMost: min(limit, remaining))
    try raw(&bytes, count: count)
  }

  mutating func contents<T: WireBytes>(
    _ contents: inout [T], atMost limit: Int, each size: Int, bytes most: Int = Limits.keyBytes
  ) throws(FormatError) {
    var count = contents.count
    try self.count(&count, atMost: limit, each: size)
    if isReading { contents.reserveCapacity(count) }
    for index in 0..<count {
      var content = isReading ? [] : contents[index].wireBytes
      try bytes(&content, atMost: most)
      if isReading { contents.append(T(content)) }
    }
  }

  package mutating func text(_ text: inout String, atMost limit: Int = .max) throws(FormatError) {
    var content = isReading ? [] : Array(text.utf8)
    try bytes(&content, atMost: limit)
    guard isReading else { return }
    guard let read = String(validating: content, as: UTF8.self) else {
      throw FormatError("a text is not UTF-8")
    }
    text = read
  }

  /// A number coded as its difference from another one, modulo 2^64, as a zigzag varint.
  @inline(__always)
  package mutating func difference(_ number: inout UInt64, from other: UInt64) throws(FormatError) {
    let distance = Int64(bitPattern: number &- other)
    var code = UInt64(bitPattern: (distance << 1) ^ (distance >> 63))
    try varint(&code)
    number = other &+ (code >> 1 ^ (0 &- (code & 1)))
  }

  /// An epoch that is coded only if it differs from the last.
  mutating func epoch(
    _ epoch: inout UInt64, isOther: Bool, than last: UInt64
  ) throws(FormatError) {
    guard isOther else { return epoch = last }
    try u64(&epoch)
    guard epoch != last else { throw FormatError("the same epoch again") }
  }

  /// A key, coded without the prefix that it shares with the last one.
  mutating func key(_ key: inout [UInt8]) throws(FormatError) {
    guard mode == .read else {
      try use(key.count)
      let shared = key.rawSpan.commonPrefix(with: lastKey.rawSpan)
      out.varint(shared)
      out.varint(key.count - shared)
      out.raw(key.rawSpan.extracting(shared..<key.count))
      return lastKey = key
    }
    var (shared, rest) = (0, 0)
    try varint(&shared, atMost: lastKey.count)
    try varint(&rest, atMost: Limits.keyBytes - shared)
    try use(shared + rest)
    guard rest <= remaining else { throw FormatError("ends too early") }
    let source = source
    if rest > 0, shared < lastKey.count, source[offset] == lastKey[shared] {
      throw FormatError("a key shares more with the last one than it says")
    }
    key = []
    key.reserveCapacity(shared + rest)
    key.append(contentsOf: lastKey[..<shared])
    key.append(copying: try source.rawSpan.slice(offset, rest))
    offset += rest
    lastKey = key
  }

  private mutating func use(_ count: Int) throws(FormatError) {
    keyBudget -= count
    guard keyBudget >= 0 else { throw FormatError("keys are longer than a message may be") }
  }

  // MARK: Records

  /// The version of a record; any other than this one is reported as a later one.
  package mutating func version(_ version: UInt8) throws(FormatError) {
    var byte = version
    try u8(&byte)
    guard byte == version else { throw FormatError("written by another version", isNewer: true) }
  }

  package mutating func runs(_ runs: inout SequenceSet) throws(FormatError) {
    guard mode == .read else { return runs.encode(into: &out) }
    var reader = ByteReader(try source.rawSpan.slice(0, end), at: offset)
    runs = try SequenceSet(from: &reader)
    offset = reader.offset
  }

  // MARK: Flags

  /// A byte of flags, for the calls of `flag` that follow.
  package mutating func flags(_ known: UInt8) throws(FormatError) {
    flagByte = out.count
    var byte: UInt8 = 0
    try u8(&byte)
    guard mode == .read else { return }
    guard byte & ~known == 0 else { throw FormatError("flags that are not known here") }
    flagByte = Int(byte)
  }

  package mutating func flag(_ bit: UInt8, _ flag: inout Bool) {
    if mode == .read {
      flag = flagByte & Int(bit) != 0
    } else if flag {
      out.bytes[flagByte] |= bit
    }
  }

  /// A number that is written only where it is not the usual one, as a flag of the byte tells.
  package mutating func varint(
    _ number: inout UInt64, flag bit: UInt8, usually usual: UInt64 = 0
  ) throws(FormatError) {
    var (isOther, code) = (number != usual, number ^ usual)
    flag(bit, &isOther)
    if isOther { try varint(&code) } else { code = 0 }
    number = code ^ usual
  }

  // MARK: Optional fields

  /// Begins a list of optional fields, each with number, length and bytes. Unknown fields in
  /// answers are from later servers and are skipped.
  /// - Returns: the state of the enclosing list, and where this one is written.
  mutating func beginFields(
    atLeast least: Int
  ) throws(FormatError) -> (around: [Field], start: Int) {
    let outer = (around: fields, start: out.count)
    fields = []
    guard mode == .read else {
      // A length of 0, which `endFields` replaces if there are fields.
      out.u8(0)
      return outer
    }
    var length = 0
    try varint(&length, atMost: WireLimits.optionalBytes)
    guard length >= least else { throw FormatError("no optional fields where some should be") }
    guard length <= remaining else { throw FormatError("ends too early") }
    let listEnd = offset + length
    var previous: UInt64 = 0
    while offset < listEnd {
      var (number, size): (UInt64, Int) = (0, 0)
      try varint(&number)
      guard number > previous else { throw FormatError("optional fields are not in order") }
      previous = number
      try varint(&size, atMost: length)
      fields.append(Field(number: number, range: offset..<offset + size))
      offset += size
    }
    guard offset == listEnd else { throw FormatError("optional fields end too late") }
    return outer
  }

  mutating func endFields(_ outer: (around: [Field], start: Int)) throws(FormatError) {
    defer { fields = outer.around }
    guard !fields.isEmpty else { return }
    guard mode != .read else {
      if isRequest { throw FormatError("fields that are not known here") }
      return
    }
    var list = ByteWriter()
    for field in fields.sorted(by: { $0.number < $1.number }) {
      list.varint(field.number)
      list.blob(field.bytes)
    }
    guard list.count <= WireLimits.optionalBytes else {
      throw FormatError("optional fields are longer than they may be")
    }
    var counted = ByteWriter(capacity: list.count + 3)
    counted.blob(list.bytes)
    out.bytes.replaceSubrange(outer.start..<outer.start + 1, with: counted.bytes)
  }

  /// Whether the list that is read has a field.
  func has(_ number: UInt64) -> Bool { fields.contains { $0.number == number } }

  /// Begins to read or write a field of the list; to read, only one that the list `has`.
  /// - Returns: for `endField`, the range to go on reading, or where the field's bytes begin.
  mutating func beginField(_ number: UInt64) -> Range<Int> {
    guard mode == .read, let index = fields.firstIndex(where: { $0.number == number }) else {
      return out.count..<out.count
    }
    let outer = offset..<end
    let range = fields.remove(at: index).range
    (offset, end) = (range.lowerBound, range.upperBound)
    return outer
  }

  mutating func endField(_ number: UInt64, _ outer: Range<Int>) throws(FormatError) {
    guard mode == .read else {
      fields.append(Field(number: number, bytes: Array(out.bytes[outer.lowerBound...])))
      return out.bytes.removeLast(out.count - outer.lowerBound)
    }
    guard remaining == 0 else {
      throw FormatError("an optional field is longer than its content")
    }
    (offset, end) = (outer.lowerBound, outer.upperBound)
  }

  /// An optional field: its bytes if written, its range in the source if read.
  struct Field {
    fileprivate var number: UInt64
    fileprivate var bytes: [UInt8] = []
    fileprivate var range = 0..<0
  }
}
