/// The columns that the heads of a frame have. One that is left out has the same answer for all
/// entries: they are puts, they end their batch, and they have none of the rest.
struct HeadColumns: OptionSet, Sendable {
  var rawValue: UInt16

  static let kinds = HeadColumns(rawValue: 1)
  static let ends = HeadColumns(rawValue: 2)
  static let sequences = HeadColumns(rawValue: 4)
  static let labelSets = HeadColumns(rawValue: 8)
  static let valueLengths = HeadColumns(rawValue: 16)
  static let previous = HeadColumns(rawValue: 32)
  static let commitTimes = HeadColumns(rawValue: 64)
  static let valueSequences = HeadColumns(rawValue: 128)
  static let created = HeadColumns(rawValue: 256)
  static let attributeLengths = HeadColumns(rawValue: 512)
  /// In the order in which they are stored.
  static let all = (0..<10).map { HeadColumns(rawValue: 1 << UInt16($0)) }
  /// Those in which every entry has a number, where they are there at all.
  static let ofAll: HeadColumns = [.kinds, .ends, .sequences, .commitTimes]
  static let known: UInt16 = 1 << 10 - 1
}

/// A column of numbers in the heads of a frame, of all entries or of some. See ``HeadsDecoder``.
struct HeadColumn {
  static let bitmapFlag: UInt8 = 0x80
  /// The least number of the column: the packed ones are stored less this.
  private var least: UInt64 = 0
  /// Bits of a number.
  private var width = 0
  /// The offset of a bitmap with a bit for each entry, set where the entry has a number in this
  /// column; nil where the column has no bitmap, since every entry has one.
  private var bitmap: Int?
  /// The offset of the bit-packed numbers.
  private var numbers = 0

  /// How many bits numbers up to `most` get: so many that each lies in eight bytes.
  static func width(of most: UInt64) -> Int {
    let bits = 64 - most.leadingZeroBitCount
    return bits > 56 ? 64 : bits
  }

  /// - Parameters:
  ///   - count: entries of the frame.
  ///   - mayLack: whether some entries may have no number.
  init(_ reader: inout ByteReader, count: Int, mayLack: Bool) throws(FormatError) {
    let form = try reader.u8()
    width = Int(form & ~Self.bitmapFlag)
    guard width <= 56 || width == 64, mayLack || form == width else {
      throw FormatError("a column of another form")
    }
    least = try reader.varint()
    var present = count
    if form & Self.bitmapFlag != 0 {
      let start = try reader.skip((count + 7) >> 3)
      bitmap = start
      present = 0
      for offset in start..<reader.offset {
        present += Int(try reader.bytes.u8(at: offset).nonzeroBitCount)
      }
      let last = try reader.bytes.u8(at: reader.offset - 1)
      guard last.leadingZeroBitCount >= (reader.offset - start) * 8 - count else {
        throw FormatError("a bitmap of more entries than there are")
      }
    }
    numbers = try reader.skip((present * width + 7) >> 3)
  }

  /// Calls `body` with each entry that has a number, and the number.
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

  /// The number of an entry; nil where it has none.
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
    guard width > 0 else { return least }
    let bit = rank &* width
    let offset = numbers &+ bit &>> 3
    var word: UInt64 = 0
    if offset <= bytes.byteCount &- 8 {
      word = try bytes.u64(at: offset)
    } else {
      for byte in offset..<bytes.byteCount {
        word |= UInt64(try bytes.u8(at: byte)) << UInt64(8 * (byte - offset))
      }
    }
    if width == 64 { return least &+ word }
    return least &+ (word &>> UInt64(bit & 7)) & (1 << UInt64(width) - 1)
  }
}
