/// Columns of numbers that grow about evenly, packed so that each number can be read by itself. The
/// locator of a sealed segment (where its entries stand) is made of them.
///
/// Rows come in groups of 128; the last one may have fewer. Within a group a number is the group's
/// first one, plus what a straight line says, plus a remainder of as many bits as the group needs.
/// Each group has a record, and the remainders stand apart:
/// ```
/// record, 16 bytes a column:  u48 first number, u8 bits of a remainder, u8 zero,
///                             u32 slope in 256ths, u32 where in the section of remainders
/// number i of a group:        first + (i * slope >> 8) + remainder i
/// remainder i:                a signed number, from bit i * bits on, lowest bit first
/// ```
/// The remainders of a group and a column begin at a byte and lie in one chunk (a unit of reads).
package enum PackedColumns {
  package static let groupShift = 7
  package static let groupRows = 1 << groupShift
  package static let recordBytes = 16
  /// Numbers are below 2^48, so a remainder takes at most 48 bits and a sign.
  package static let mostBits = 49

  package struct Encoded {
    package var records: [UInt8]
    package var remainders: [UInt8]
  }

  package static func groups(rows: Int) -> Int { (rows + groupRows - 1) >> groupShift }

  /// - Parameter columns: of one length; numbers below 2^48.
  package static func encode(_ columns: [[UInt64]]) -> Encoded {
    var records = ByteWriter()
    var remainders = ByteWriter()
    let rows = columns.first?.count ?? 0
    for start in stride(from: 0, to: rows, by: groupRows) {
      for column in columns {
        encode(
          column[start..<min(start + groupRows, rows)], records: &records, remainders: &remainders)
      }
    }
    return Encoded(records: records.bytes, remainders: remainders.bytes)
  }

  private static func encode(
    _ group: ArraySlice<UInt64>, records: inout ByteWriter, remainders: inout ByteWriter
  ) {
    let first = group[group.startIndex]
    let last = group[group.endIndex - 1]
    var slope: UInt32 = 0
    if group.count > 1, last > first {
      slope = UInt32(clamping: ((last - first) << 8) / UInt64(group.count - 1))
    }
    var width = width(group, slope)
    // A line between the ends is of no use where numbers go up and down.
    let flatWidth = slope == 0 ? width : self.width(group, 0)
    if flatWidth < width { (width, slope) = (flatWidth, 0) }
    let count = (group.count * width + 7) >> 3
    let payload = FormatConstants.locatorChunkPayloadBytes
    let room = payload - remainders.count % payload
    // What would cross the end of a chunk begins the next one.
    if count > room { remainders.zeros(room) }
    records.u32(UInt32(truncatingIfNeeded: first))
    records.u16(UInt16(truncatingIfNeeded: first >> 32))
    records.u16(UInt16(width))
    records.u32(slope)
    records.u32(UInt32(remainders.count))
    guard width > 0 else { return }
    var bits = PackedBits()
    let mask: UInt64 = 1 << UInt64(width) - 1
    for (index, number) in group.enumerated() {
      let remainder = number &- first &- line(index, slope)
      bits.add(remainder & mask, width: width, to: &remainders)
    }
    bits.finish(&remainders)
  }

  /// How many bits the remainders from a line of that slope need, sign included.
  private static func width(_ group: ArraySlice<UInt64>, _ slope: UInt32) -> Int {
    let first = group[group.startIndex]
    var (all, isOnLine): (UInt64, Bool) = (0, true)
    for (index, number) in group.enumerated() {
      let remainder = Int64(bitPattern: number &- first &- line(index, slope))
      isOnLine = isOnLine && remainder == 0
      all |= UInt64(bitPattern: remainder ^ (remainder >> 63))
    }
    // In `all` a remainder of -1 looks like 0, but only remainders of 0 take no bit.
    return isOnLine ? 0 : 65 - all.leadingZeroBitCount
  }

  /// How much the line has risen at an index.
  @inline(__always)
  package static func line(_ index: Int, _ slope: UInt32) -> UInt64 {
    (UInt64(truncatingIfNeeded: index) &* UInt64(slope)) &>> 8
  }
}

/// A column's record of a group.
package struct PackedGroup {
  package let first: UInt64
  package let bits: Int
  private let slope: UInt32
  private let start: UInt32

  @inline(__always)
  package init(_ bytes: RawSpan, at position: Int) throws(FormatError) {
    let word = try bytes.u64(at: position)
    first = word & 0xffff_ffff_ffff
    bits = Int(word &>> 48)
    slope = try bytes.u32(at: position + 8)
    start = try bytes.u32(at: position + 12)
    // `bits` has the record's zero byte above it: any other value there fails, too.
    guard bits <= PackedColumns.mostBits else {
      throw FormatError("a number of a locator is too long")
    }
  }

  /// The offset, in the section of remainders, of the byte in which a remainder begins.
  @inline(__always)
  package func byte(of index: Int) -> Int { Int(start) &+ (index &* bits) &>> 3 }

  /// The number at an index, from the eight bytes at ``byte(of:)``: 7 bits to skip and 49 of the
  /// remainder fit. Not for groups of 0 bits, where a shift by 64 would be masked to 0.
  @inline(__always)
  package func number(_ index: Int, _ word: UInt64) -> UInt64 {
    let shift = UInt64(truncatingIfNeeded: (index &* bits) & 7)
    let unused = UInt64(truncatingIfNeeded: 64 &- bits)
    let remainder = Int64(bitPattern: (word &>> shift) &<< unused) &>> Int64(bitPattern: unused)
    return first &+ PackedColumns.line(index, slope) &+ UInt64(bitPattern: remainder)
  }

  /// A guess at the index of a number, by the slope from an index whose number is known.
  @inline(__always)
  package func index(of number: UInt64, from index: Int, _ known: UInt64) -> Int {
    guard slope > 0 else { return index }
    return index &+ Int((Int64(bitPattern: number &- known) &<< 8) / Int64(slope))
  }

  /// The number at an index of a group whose remainders have no bits.
  @inline(__always)
  package func number(_ index: Int) -> UInt64 { first &+ PackedColumns.line(index, slope) }
}
