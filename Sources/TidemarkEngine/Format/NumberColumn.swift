/// A column of integers in the heads (entry headers) of a frame, where any row can be read without
/// decoding the others. Rows may lack a number. See ``HeadsDecoder``.
/// ```
/// u8 bits of a number, and 128 if some rows have none   varint the least number
/// a bit for each row, set where it has a number, if some have none
/// the numbers less the least one, bit after bit, the lowest first
/// ```
struct NumberColumn {
  fileprivate static let bitmapFlag: UInt8 = 0x80
  /// The least number of the column: the packed ones are stored less this.
  private var least: UInt64 = 0
  /// Bits of a number.
  private var width = 0
  /// Byte offset of the bitmap that tells which rows have a number; nil if all of them have one.
  private var bitmap: Int?
  /// Byte offset of the bit-packed numbers.
  private var numbers = 0

  /// How many bits numbers up to `most` get: so many that each lies in eight bytes.
  fileprivate static func width(of most: UInt64) -> Int {
    let bits = 64 - most.leadingZeroBitCount
    return bits > 56 ? 64 : bits
  }

  /// - Parameter mayLack: whether some of the `count` rows may have no number.
  @inline(__always)
  init(_ reader: inout ByteReader, count: Int, mayLack: Bool) throws(FormatError) {
    let form = try reader.u8()
    width = Int(form & ~Self.bitmapFlag)
    guard width <= 56 || width == 64, mayLack || form == width else {
      throw FormatError("a column of another form")
    }
    least = try reader.varint()
    let present = form == width ? count : try readBitmap(&reader, count: count)
    numbers = try reader.skip((present * width + 7) >> 3)
  }

  /// - Returns: how many rows have a number.
  private mutating func readBitmap(
    _ reader: inout ByteReader, count: Int
  ) throws(FormatError) -> Int {
    let start = try reader.skip((count + 7) >> 3)
    bitmap = start
    var present = 0
    for offset in start..<reader.offset {
      present += Int(try reader.bytes.u8(at: offset).nonzeroBitCount)
    }
    let last = try reader.bytes.u8(at: reader.offset - 1)
    guard last.leadingZeroBitCount >= (reader.offset - start) * 8 - count else {
      throw FormatError("a bitmap of more rows than there are")
    }
    return present
  }

  /// Calls `body` with each row that has a number, and the number.
  @inline(__always)
  func forEach(
    in bytes: RawSpan, count: Int, _ body: (Int, UInt64) throws(FormatError) -> Void
  ) throws(FormatError) {
    var rank = 0
    for index in 0..<count {
      if let bitmap {
        guard try bytes.u8(at: bitmap + index >> 3) >> UInt8(index & 7) & 1 == 1 else { continue }
      }
      try body(index, try number(rank, in: bytes))
      rank += 1
    }
  }

  /// The number that the column stores for a row; nil if the bitmap says that there is none.
  func number(of index: Int, in bytes: RawSpan) throws(FormatError) -> UInt64? {
    guard let bitmap else { return try number(index, in: bytes) }
    let last = try bytes.u8(at: bitmap + index >> 3)
    guard last >> UInt8(index & 7) & 1 == 1 else { return nil }
    var rank = (last & (1 << UInt8(index & 7) - 1)).nonzeroBitCount
    let end = bitmap + index >> 3
    var offset = bitmap
    while offset <= end - 8 {
      rank += try bytes.u64(at: offset).nonzeroBitCount
      offset += 8
    }
    while offset < end {
      rank += try bytes.u8(at: offset).nonzeroBitCount
      offset += 1
    }
    return try number(rank, in: bytes)
  }

  /// - Parameter rank: which of the numbers.
  @inline(__always)
  private func number(_ rank: Int, in bytes: RawSpan) throws(FormatError) -> UInt64 {
    least &+ (try PackedBits.number(rank, width: width, from: numbers, in: bytes))
  }
}

extension ByteWriter {
  /// Appends a column, of at least one number.
  /// - Parameter number: that of a row; nil for none.
  @inline(__always)
  mutating func column<Row>(_ rows: [Row], _ number: (Row) -> UInt64?) {
    var (least, most, missing) = (UInt64.max, UInt64.min, false)
    for row in rows {
      guard let value = number(row) else {
        missing = true
        continue
      }
      least = min(least, value)
      most = max(most, value)
    }
    let width = NumberColumn.width(of: most - least)
    u8(UInt8(width) | (missing ? NumberColumn.bitmapFlag : 0))
    varint(least)
    if missing {
      var bits = PackedBits()
      for row in rows { bits.add(number(row) == nil ? 0 : 1, width: 1, to: &self) }
      bits.finish(&self)
    }
    guard width > 0 else { return }
    var bits = PackedBits()
    for row in rows {
      if let value = number(row) { bits.add(value - least, width: width, to: &self) }
    }
    bits.finish(&self)
  }
}

/// Numbers of equal width, bit after bit, the lowest first: at most 56 bits of each, or 64.
struct PackedBits {
  private var pending: UInt64 = 0
  private var count = 0

  /// Adds a number.
  @inline(__always)
  mutating func add(_ number: UInt64, width: Int, to writer: inout ByteWriter) {
    // A number of 64 bits begins at a byte: no other width is above 56.
    if width == 64 { return writer.u64(number) }
    pending |= number << UInt64(count)
    count += width
    guard count >= 8 else { return }
    let whole = count >> 3
    writer.bytes.append(pending, bytes: whole)
    pending = whole == 8 ? 0 : pending >> UInt64(8 * whole)
    count &= 7
  }

  /// Writes the bits that did not fill a byte yet, padded with zeros.
  func finish(_ writer: inout ByteWriter) {
    if count > 0 { writer.u8(UInt8(truncatingIfNeeded: pending)) }
  }

  /// Reads a number; zeros where the bytes end before it.
  /// - Parameter start: where the first one begins.
  @inline(__always)
  static func number(
    _ rank: Int, width: Int, from start: Int, in bytes: RawSpan
  ) throws(FormatError) -> UInt64 {
    guard width > 0 else { return 0 }
    let bit = rank &* width
    let offset = start &+ bit &>> 3
    var word: UInt64 = 0
    if offset <= bytes.byteCount &- 8 {
      word = try bytes.u64(at: offset)
    } else {
      for byte in offset..<max(offset, bytes.byteCount) {
        word |= UInt64(try bytes.u8(at: byte)) << UInt64(8 * (byte - offset))
      }
    }
    if width == 64 { return word }
    return (word &>> UInt64(bit & 7)) & (1 << UInt64(width) - 1)
  }
}
