internal import TidemarkEngine

/// The keys and values of what is stored of indexes.
///
/// ```
/// \0tidemark/#cNAME              a collection's indexes: an IndexCatalog
/// \0tidemark/#iN TERM ID LENGTH  a row of index N: the object with this id has this term
/// \0tidemark/#rN ID              the rows of an object of collection N, all together
/// \0tidemark/#dN ID              an object of collection N that cannot be indexed, or was written
///                                by a program that does not know its indexes
/// ```
/// N has four bytes, the length of the term two, highest first. They are derived keys: see
/// `DerivedKeys`.
enum IndexKeys {
  /// Bytes of a row's key beside term and id, and a document's number.
  static let overhead = 32
  /// Most bytes of a term.
  static let termBytes = 4_096

  /// The beginning of the keys of one kind that belong to a number.
  static func prefix(_ kind: Unicode.Scalar, _ number: UInt32) -> [UInt8] {
    DerivedKeys.prefix + [UInt8(ascii: kind)] + number.bytesHighestFirst
  }

  static let catalogs = DerivedKeys.prefix + [UInt8(ascii: "c")]

  static func rows(ofIndex number: UInt32) -> [UInt8] { prefix("i", number) }

  static func row(_ row: DerivedRow, id: ArraySlice<UInt8>) -> [UInt8] {
    var key = rows(ofIndex: row.index)
    key.reserveCapacity(key.count + row.term.count + id.count + 2)
    key += row.term
    key += id
    key.append(UInt8(truncatingIfNeeded: row.term.count >> 8))
    key.append(UInt8(truncatingIfNeeded: row.term.count))
    return key
  }

  static func parts(
    ofRow key: [UInt8]
  ) throws(TidemarkError) -> (term: ArraySlice<UInt8>, id: ArraySlice<UInt8>) {
    let id = try placeOfID(key.rawSpan)
    return (key[termStart..<id.lowerBound], key[id])
  }

  @_lifetime(copy key)
  static func id(ofRow key: RawSpan) throws(TidemarkError) -> RawSpan {
    key.extracting(try placeOfID(key))
  }

  private static var termStart: Int { DerivedKeys.prefix.count + 5 }

  private static func placeOfID(_ key: RawSpan) throws(TidemarkError) -> Range<Int> {
    let end = key.byteCount - 2
    guard end >= termStart else { throw damaged("a row of an index") }
    let start = termStart + (Int(key.byte(end)) << 8 | Int(key.byte(end + 1)))
    guard start <= end else { throw damaged("a row of an index") }
    return start..<end
  }

  static func objects(ofCollection number: UInt32) -> [UInt8] { prefix("r", number) }
  static func marks(ofCollection number: UInt32) -> [UInt8] { prefix("d", number) }

  static func damaged(_ what: String) -> TidemarkError {
    TidemarkError(.damaged, "\(what) cannot be read; rebuild the collection's indexes")
  }

  /// The rows of an object as they are stored.
  static func encode(_ rows: [DerivedRow]) -> [UInt8] {
    var writer = ByteWriter()
    for row in rows {
      writer.varint(UInt64(row.index))
      writer.blob(row.term)
    }
    return writer.bytes
  }

  static func decode(_ bytes: RawSpan) throws(TidemarkError) -> [DerivedRow] {
    var rows: [DerivedRow] = []
    var reader = ByteReader(bytes)
    do throws(FormatError) {
      while reader.remaining > 0 {
        let index = try reader.varint(atMost: Int(UInt32.max))
        let term = try reader.array(try reader.varint(atMost: min(termBytes, reader.remaining)))
        rows.append(DerivedRow(index: UInt32(index), term: term))
      }
    } catch { throw damaged("the rows of an object") }
    return rows
  }
}

extension FixedWidthInteger {
  var bytesHighestFirst: [UInt8] {
    (0..<Self.bitWidth / 8).map {
      UInt8(truncatingIfNeeded: self >> (Self.bitWidth - 8 - 8 * $0))
    }
  }
}

/// The indexes of a collection as they are stored.
struct IndexCatalog: Sendable, Hashable {
  struct Row: Sendable, Hashable {
    var name: String
    var number: UInt32
    var signature: [UInt8]
    var isUnique: Bool
    /// Whether it is a full-text index.
    var isText = false
    /// Whether all objects are in it.
    var isComplete: Bool
  }

  private static let version: UInt8 = 1
  static let mostRows = 64

  /// The collection's number.
  var number: UInt32
  /// The highest number that an index of the collection ever had: none is given out again, since
  /// rows of objects may speak of it.
  var lastIndex: UInt32 = 0
  var rows: [Row] = []
  /// Numbers of indexes that are gone, whose rows may still be there.
  var dropped: [UInt32] = []

  init(number: UInt32) { self.number = number }

  /// Whether all objects are in all indexes, and no rows of others are left.
  var isComplete: Bool { dropped.isEmpty && rows.allSatisfy(\.isComplete) }

  var encoded: [UInt8] {
    var writer = ByteWriter()
    writer.u8(Self.version)
    writer.u32(number)
    writer.u32(lastIndex)
    writer.varint(rows.count)
    for row in rows {
      writer.u32(row.number)
      writer.u8((row.isUnique ? 1 : 0) | (row.isComplete ? 2 : 0) | (row.isText ? 4 : 0))
      writer.text(row.name)
      writer.blob(row.signature)
    }
    writer.varint(dropped.count)
    for number in dropped { writer.u32(number) }
    return writer.bytes
  }

  init(decoding bytes: RawSpan) throws(TidemarkError) {
    var reader = ByteReader(bytes)
    do throws(FormatError) {
      guard try reader.u8() == Self.version else { throw FormatError("unknown version") }
      number = try reader.u32()
      lastIndex = try reader.u32()
      for _ in 0..<(try reader.varint(atMost: Self.mostRows)) {
        let number = try reader.u32()
        let flags = try reader.u8()
        let name = try reader.blob()
        let signature = try reader.blob()
        rows.append(
          Row(
            name: String(decoding: name, as: UTF8.self), number: number, signature: signature,
            isUnique: flags & 1 != 0, isText: flags & 4 != 0, isComplete: flags & 2 != 0))
      }
      for _ in 0..<(try reader.varint(atMost: reader.remaining)) {
        dropped.append(try reader.u32())
      }
      guard number < .max, lastIndex < .max else { throw FormatError("numbers are used up") }
    } catch { throw IndexKeys.damaged("the list of a collection's indexes") }
  }
}
