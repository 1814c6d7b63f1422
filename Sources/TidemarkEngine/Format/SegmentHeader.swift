/// The first page of a segment, a file of the log, stored twice: one intact copy is enough.
///
/// ```
///  0 u64 magic                 64 u8  kind: 0 appended, 1 compacted
///  8 u16 major, u16 minor      65 u8  zero, u16 zero
/// 12 u32 compatible features   68 u32 where the dictionary begins; 0 for none
/// 16 u32 read-only features    72 u32 stored length of the dictionary
/// 20 u32 incompatible features 76 u32 where its second copy begins
/// 24 16  store id              80 u64 XXH64 of the dictionary
/// 40 u64 segment id            88 16  key id; zero for none
/// 48 u64 base sequence        104 ... zero
/// 56 u32 salt               4092 u32 CRC-32C of 0..<4092
/// 60 u32 where frames begin
/// ```
/// In an encrypted segment, which incompatible feature 1 tells, ``FileSeal`` stands at 88. A
/// dictionary stands behind the two pages, its second copy in a page of its own. Its last byte is
/// never zero: should both headers be lost, the zeros behind it still tell how long it is.
package struct SegmentHeader: Sendable, Hashable {
  package enum Kind: UInt8, Sendable {
    /// Frames in the order of their commits, sequences dense.
    case appended = 0
    /// Entries sorted by (key, sequence), each with its sequence.
    case compacted = 1
  }

  /// Where both copies of a compacted segment's zstd dictionary stand.
  package struct Dictionary: Sendable, Hashable {
    package var offsets: [Int]
    package var length: Int
    package var checksum: UInt64
  }

  package var storeID: [UInt8]
  package var segmentID: UInt64
  package var baseSequence: UInt64
  package var salt: UInt32
  package var kind: Kind
  package var firstFrame = FormatConstants.segmentHeaderBytes
  package var dictionary: Dictionary?
  /// The segment's key, encrypted with the user's; nil when the segment is not encrypted.
  package var seal: FileSeal?

  /// Both copies of the page.
  package func encoded() -> [UInt8] {
    var writer = prefix(isSealed: seal != nil)
    seal?.encode(into: &writer)
    writer.zeros(FormatConstants.segmentHeaderPageBytes - 4 - writer.count)
    writer.u32(CRC32C.checksum(writer.bytes.rawSpan))
    return writer.bytes + writer.bytes
  }

  /// Adds the segment's key. Its seal authenticates the fields before it: none may change any more.
  package mutating func seal(with key: NewFileKey?) throws(FormatError) {
    seal = try key?.seal(fileID: segmentID, prefix: prefix(isSealed: true).bytes)
  }

  /// The fields before the seal.
  private func prefix(isSealed: Bool) -> ByteWriter {
    var writer = ByteWriter(capacity: FormatConstants.segmentHeaderBytes)
    writer.u64(FormatConstants.segmentMagic)
    writer.u16(FormatConstants.major)
    writer.u16(FormatConstants.minor)
    writer.u32(0)
    writer.u32(0)
    writer.u32(isSealed ? FormatConstants.encryptionFeature : 0)
    writer.raw(storeID)
    writer.u64(segmentID)
    writer.u64(baseSequence)
    writer.u32(salt)
    writer.u32(UInt32(firstFrame))
    writer.u32(UInt32(kind.rawValue))
    writer.u32(UInt32(dictionary?.offsets[0] ?? 0))
    writer.u32(UInt32(dictionary?.length ?? 0))
    writer.u32(UInt32(dictionary?.offsets[1] ?? 0))
    writer.u64(dictionary?.checksum ?? 0)
    return writer
  }
}

extension SegmentHeader {
  /// Decodes one copy of the page.
  package init(decodingPage bytes: RawSpan) throws(FormatError) {
    let page = try bytes.slice(0, FormatConstants.segmentHeaderPageBytes)
    let end = FormatConstants.segmentHeaderPageBytes - 4
    guard try page.u64(at: 0) == FormatConstants.segmentMagic else {
      throw FormatError("not a segment")
    }
    guard CRC32C.checksum(page.extracting(0..<end)) == (try page.u32(at: end)) else {
      throw FormatError("segment header does not match its checksum")
    }
    let major = try page.u16(at: 8)
    guard major >= FormatConstants.major else {
      throw FormatError("segment of an earlier version of the format")
    }
    guard major == FormatConstants.major,
      try page.u32(at: 20) & ~FormatConstants.knownIncompatibleFeatures == 0
    else { throw FormatError("written by a later version of the format", isNewer: true) }
    storeID = [UInt8](copying: try page.slice(24, 16))
    segmentID = try page.u64(at: 40)
    baseSequence = try page.u64(at: 48)
    salt = try page.u32(at: 56)
    firstFrame = Int(try page.u32(at: 60))
    let kindBits = try page.u32(at: 64)
    guard kindBits <= 1, let kind = Kind(rawValue: UInt8(kindBits)) else {
      throw FormatError("unknown kind of segment", isNewer: true)
    }
    self.kind = kind
    let first = Int(try page.u32(at: 68))
    let length = Int(try page.u32(at: 72))
    let second = Int(try page.u32(at: 76))
    if length > 0 {
      dictionary = Dictionary(
        offsets: [first, second], length: length, checksum: try page.u64(at: 80))
    }
    if try page.u32(at: 20) & FormatConstants.encryptionFeature != 0 {
      seal = try FileSeal(page, at: 88)
    }
    try checkBounds()
  }

  private func checkBounds() throws(FormatError) {
    guard baseSequence > 0, baseSequence < 1 << 48,
      firstFrame >= FormatConstants.segmentHeaderBytes,
      firstFrame % FormatConstants.frameAlignment == 0, firstFrame <= 1 << 20,
      dictionary != nil || firstFrame == FormatConstants.segmentHeaderBytes
    else { throw FormatError("segment header out of bounds") }
    guard let dictionary else { return }
    guard
      dictionary.length <= Limits.dictionaryBytes + (seal == nil ? 0 : BlockSealer.tagBytes),
      dictionary.offsets[0] == FormatConstants.segmentHeaderBytes,
      dictionary.offsets[1] >= dictionary.offsets[0] + dictionary.length,
      dictionary.offsets[1] + dictionary.length <= firstFrame
    else { throw FormatError("dictionary out of bounds") }
  }
}
