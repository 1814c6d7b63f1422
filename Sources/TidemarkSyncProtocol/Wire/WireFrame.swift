package import TidemarkEngine

/// The frame around a message: what it is, how long it is and whether it came whole.
///
/// `WireProtocol.md`, section "Frame", has its bytes.
public enum WireFrame {
  /// The bytes `TMSW`.
  static let magic: UInt32 = 0x5753_4d54
  /// The version of the protocol, which every frame bears.
  public static let version: UInt8 = 1
  /// The length of the header before the message.
  public static let headerBytes = 20
  /// Most raw bytes of a message unless the two ends agree on more: a batch or page of 256 KiB and
  /// the verdicts of another have room in it.
  public static let defaultLimit = 1 << 20
  /// Most raw bytes that can be agreed on: the largest value and what stands around it.
  public static let largestLimit = 72 << 20
  /// The content type of a frame.
  public static let contentType = "application/vnd.tidemark.sync"

  /// The facts about a frame in its header.
  public struct Header: Sendable, Hashable {
    /// Which message it holds.
    public var kind: WireMessage.Kind
    /// How the message is stored.
    public var codec: WireCodec
    /// The length of the message.
    public var rawCount: Int
    /// The length of the message as stored.
    public var storedCount: Int
    package var checksum: UInt32

    /// The length of header and message.
    public var frameCount: Int { headerBytes + storedCount }
  }

  /// Reads the header at the beginning of some bytes, so that a reader of a stream knows how many
  /// come.
  /// - Parameters:
  ///   - bytes: at least ``headerBytes`` of them.
  ///   - limit: most raw bytes of the message.
  /// - Throws: ``PeerError`` of kind `malformed`.
  public static func header(_ bytes: RawSpan, limit: Int = defaultLimit) throws(PeerError)
    -> Header
  {
    do throws(FormatError) { return try Header(bytes, limit: limit) } catch {
      throw PeerError(error)
    }
  }

  /// Puts a message into a frame.
  package static func encode(
    _ raw: [UInt8], _ kind: WireMessage.Kind, codec: WireCodec, limit: Int
  ) throws(FormatError) -> [UInt8] {
    guard raw.count <= bounded(limit) else {
      throw FormatError("a message of \(raw.count) bytes is longer than the \(limit) allowed")
    }
    var writer = ByteWriter(capacity: headerBytes + raw.count / (codec == .zstd ? 2 : 1) + 64)
    writer.u32(magic)
    writer.u8(version)
    writer.u8(kind.rawValue)
    writer.u8(WireCodec.none.rawValue)
    writer.u8(0)
    writer.u32(UInt32(raw.count))
    writer.u32(UInt32(raw.count))
    writer.u32(0)
    if codec == .zstd, raw.count >= compressFromBytes {
      let stored = try contexts.withCompressor(level: FrameCodecs.fastLevel) {
        (compressor) throws(FormatError) in
        try compressor.compress(raw.rawSpan, appendingTo: &writer.bytes)
      }
      if stored < raw.count {
        writer.bytes[6] = WireCodec.zstd.rawValue
        writer.patch(u32: UInt32(stored), at: 12)
      } else {
        writer.bytes.removeLast(stored)
      }
    }
    if writer.bytes[6] == WireCodec.none.rawValue { writer.raw(raw) }
    writer.patch(u32: checksum(writer.bytes.rawSpan), at: checksumOffset)
    return writer.bytes
  }

  /// Takes the message out of a frame, which must be all that there is.
  package static func decode(
    _ bytes: RawSpan, limit: Int
  ) throws(FormatError) -> (kind: WireMessage.Kind, raw: [UInt8]) {
    let header = try Header(bytes, limit: limit)
    guard bytes.byteCount >= header.frameCount else { throw FormatError("ends too early") }
    guard bytes.byteCount == header.frameCount else { throw FormatError("bytes after the frame") }
    guard checksum(bytes) == header.checksum else { throw FormatError("checksums differ") }
    let stored = try bytes.slice(headerBytes, header.storedCount)
    guard header.codec == .zstd else { return (header.kind, [UInt8](copying: stored)) }
    var raw: [UInt8] = []
    try contexts.withDecompressor { (decompressor) throws(FormatError) in
      try decompressor.decompress(stored, into: &raw, rawCount: header.rawCount)
    }
    return (header.kind, raw)
  }

  /// The checksum of header and message, without the field that it stands in.
  package static func checksum(_ bytes: RawSpan) -> UInt32 {
    let head = CRC32C.checksum(bytes.extracting(first: checksumOffset))
    return CRC32C.checksum(bytes.extracting(headerBytes..<bytes.byteCount), seed: head)
  }

  static let checksumOffset = 16
  /// Shorter messages do not become shorter.
  private static let compressFromBytes = 64
  private static let contexts = ZstdContexts()

  fileprivate static func bounded(_ limit: Int) -> Int { min(max(limit, 0), largestLimit) }
}

extension WireFrame.Header {
  package init(_ bytes: RawSpan, limit: Int) throws(FormatError) {
    var reader = ByteReader(bytes)
    guard try reader.u32() == WireFrame.magic else { throw FormatError("no frame of the protocol") }
    let version = try reader.u8()
    guard version == WireFrame.version else {
      throw FormatError(
        "version \(version) of the protocol is not known here",
        isNewer: version > WireFrame.version)
    }
    let (kind, codec) = (try reader.u8(), try reader.u8())
    guard let kind = WireMessage.Kind(rawValue: kind) else {
      throw FormatError("message type \(kind) is not known here")
    }
    guard let codec = WireCodec(rawValue: codec) else {
      throw FormatError("codec \(codec) is not known here")
    }
    guard try reader.u8() == 0 else { throw FormatError("a reserved byte is not zero") }
    let (raw, stored, checksum) = (try reader.u32(), try reader.u32(), try reader.u32())
    guard raw <= UInt32(WireFrame.bounded(limit)) else {
      throw FormatError("a message of \(raw) bytes is longer than the \(limit) allowed")
    }
    guard codec == .none ? stored == raw : stored < raw else {
      throw FormatError("the lengths of a frame do not fit")
    }
    self.init(
      kind: kind, codec: codec, rawCount: Int(raw), storedCount: Int(stored), checksum: checksum)
  }
}

/// How a frame stores its message.
public enum WireCodec: UInt8, Sendable, Hashable, CaseIterable {
  /// As it is.
  case none = 0
  /// As one zstd frame without dictionary, where that is shorter.
  case zstd = 1
}

extension PeerError {
  /// A broken or hostile message.
  package init(_ error: FormatError) { self.init(.malformed, error.reason) }
}
