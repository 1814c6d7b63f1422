internal import TidemarkEngine

/// The segments of a full-text index.
///
/// A document's words are one entry, committed with the object. Of documents that lie still,
/// segments are made in the background: for each word the documents that have it. So a write costs
/// one entry, and a search reads a few lists.
struct SearchCatalog: Sendable, Hashable {
  struct Segment: Sendable, Hashable {
    var number: UInt32
    var level: UInt8
    var first: UInt64
    var last: UInt64
    /// Documents that it was made of.
    var documents: Int
    /// Words of these in all.
    var words: Int
  }

  private static let version: UInt8 = 1
  private static let mostSegments = 4_096

  /// In the order of their documents.
  var segments: [Segment] = []
  var lastNumber: UInt32 = 0

  init() {}

  /// The last document that is in a segment.
  var through: UInt64 { segments.last?.last ?? 0 }

  var encoded: [UInt8] {
    var writer = ByteWriter()
    writer.u8(Self.version)
    writer.u32(lastNumber)
    writer.varint(segments.count)
    for segment in segments {
      writer.u32(segment.number)
      writer.u8(segment.level)
      writer.varint(segment.first)
      writer.varint(segment.last)
      writer.varint(segment.documents)
      writer.varint(segment.words)
    }
    return writer.bytes
  }

  init(decoding bytes: RawSpan) throws(TidemarkError) {
    do throws(FormatError) {
      var reader = ByteReader(bytes)
      guard try reader.u8() == Self.version else { throw FormatError("unknown version") }
      lastNumber = try reader.u32()
      for _ in 0..<(try reader.varint(atMost: Self.mostSegments)) {
        segments.append(
          Segment(
            number: try reader.u32(), level: try reader.u8(), first: try reader.varint(),
            last: try reader.varint(), documents: try reader.varint(atMost: .max),
            words: try reader.varint(atMost: .max)))
      }
    } catch { throw IndexKeys.damaged("the segments of a full-text index") }
  }
}

/// The keys of a full-text index beside its rows.
///
/// ```
/// \0tidemark/#s N             the catalog of index N
/// \0tidemark/#w N SEGMENT WORD  a block of a segment: lists of words, this one first
/// \0tidemark/#l N SEGMENT     how long the segment's documents are, a byte each
/// ```
/// A row of the index, `\0tidemark/#iN TERM ID LENGTH`, has the document's number, eight bytes,
/// highest first, and eight bytes of a hash of its words as the term, and the words as the value.
enum SearchKeys {
  static func catalog(_ index: UInt32) -> [UInt8] { IndexKeys.prefix("s", index) }

  static func blocks(_ index: UInt32) -> [UInt8] { IndexKeys.prefix("w", index) }

  static func blocks(_ index: UInt32, _ segment: UInt32) -> [UInt8] {
    blocks(index) + segment.bytesHighestFirst
  }

  static func lengths(_ index: UInt32) -> [UInt8] { IndexKeys.prefix("l", index) }

  static func lengths(_ index: UInt32, _ segment: UInt32) -> [UInt8] {
    lengths(index) + segment.bytesHighestFirst
  }

  /// The bytes of a document's number in a term.
  static func term(_ document: UInt64) -> [UInt8] { document.bytesHighestFirst }

  /// The document of a term.
  static func document(_ term: ArraySlice<UInt8>) -> UInt64 {
    term.prefix(8).reduce(0) { $0 << 8 | UInt64($1) }
  }
}

/// The length of a document in a byte, exact to about 5 %.
enum DocumentLength {
  static func byte(_ length: Int) -> UInt8 {
    UInt8(clamping: table.partitioningIndex { $0 >= length })
  }

  static func length(_ byte: UInt8) -> Int { table[Int(byte)] }

  private static let table: [Int] = {
    var table: [Int] = []
    var value = 1.0
    for step in 0..<256 {
      table.append(step < 16 ? step : Int(value))
      value = step < 15 ? Double(step + 1) : value * 1.044
    }
    return table
  }()
}
