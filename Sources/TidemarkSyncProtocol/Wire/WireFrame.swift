package import TidemarkEngine

/// The frame around a binary message: a header with its kind, codec, lengths and checksum.
///
/// `WireProtocol.md`, section "Frame", has its bytes.
public enum WireFrame {
  /// The bytes `TMSW`.
  static let magic: UInt32 = 0x5753_4d54
  /// The version of the protocol, 1, that every frame's header states.
  public static let version: UInt8 = 1
  /// The length of a frame's header, which precedes the message: 20 bytes.
  public static let headerBytes = 20
  /// The most bytes of an uncompressed message, unless a reader sets another limit: 1 MiB. It has
  /// room for a batch or page of 256 KiB, and for the verdicts on another batch.
  public static let defaultLimit = 1 << 20
  /// The largest limit that a reader can set: 72 MiB, for the largest value and the message around
  /// it.
  public static let largestLimit = 72 << 20
  /// The value of the HTTP header `Content-Type` for a frame.
  public static let contentType = "application/vnd.tidemark.sync"

  /// The decoded header of a frame: the kind, codec and lengths of its message.
  public struct Header: Sendable, Hashable {
    /// The kind of the message in the frame.
    public var kind: WireMessage.Kind
    /// How the message in the frame is compressed.
    public var codec: WireCodec
    /// The length of the uncompressed message in bytes.
    public var rawCount: Int
    /// The length of the message in the frame in bytes, after compression.
    public var storedCount: Int
    package var checksum: UInt32

    /// The length of the whole frame in bytes: header and compressed message.
    public var frameCount: Int { headerBytes + storedCount }
  }

  /// Makes a frame of a message: an uncompressed head, which may be empty, and a body.
  package static func encode(
    head: [UInt8] = [], _ body: WireBody, _ kind: WireMessage.Kind, limit: Int
  ) throws(FormatError) -> [UInt8] {
    let rawCount = head.count + body.rawCount
    guard rawCount <= bounded(limit) else {
      throw FormatError("a message of \(rawCount) bytes is longer than the \(limit) allowed")
    }
    let isBehindHead = body.isCompressed && !head.isEmpty
    let codec: WireCodec =
      isBehindHead ? .zstdBehindHead : body.isCompressed ? .zstd : .none
    let storedCount = (isBehindHead ? 4 : 0) + head.count + body.stored.count
    var writer = ByteWriter(capacity: headerBytes + storedCount)
    writer.u32(magic)
    writer.u8(version)
    writer.u8(kind.rawValue)
    writer.u8(codec.rawValue)
    writer.u8(0)
    writer.u32(UInt32(rawCount))
    writer.u32(UInt32(storedCount))
    writer.u32(0)
    if isBehindHead { writer.u32(UInt32(head.count)) }
    writer.raw(head)
    writer.raw(body.stored)
    writer.patch(u32: checksum(writer.bytes.rawSpan), at: checksumOffset)
    return writer.bytes
  }

  /// Compresses a message, or the rest of one after its head, if that makes it shorter.
  package static func store(_ raw: [UInt8], codec: WireCodec) throws(FormatError) -> WireBody {
    guard codec != .none, raw.count >= compressFromBytes else {
      return WireBody(rawCount: raw.count, stored: raw, isCompressed: false)
    }
    var stored: [UInt8] = []
    stored.reserveCapacity(raw.count / 2 + 64)
    _ = try contexts.withCompressor(level: FrameCodecs.fastLevel) {
      (compressor) throws(FormatError) in
      try compressor.compress(raw.rawSpan, appendingTo: &stored)
    }
    // It must save 4 bytes, as the length of a head takes as many.
    let isCompressed = stored.count + 4 < raw.count
    return WireBody(
      rawCount: raw.count, stored: isCompressed ? stored : raw, isCompressed: isCompressed)
  }

  /// The message in a frame; `bytes` must be exactly one frame.
  package static func decode(
    _ bytes: RawSpan, limit: Int
  ) throws(FormatError) -> (kind: WireMessage.Kind, raw: [UInt8]) {
    let header = try Header(bytes, limit: limit)
    guard bytes.byteCount >= header.frameCount else { throw FormatError("ends too early") }
    guard bytes.byteCount == header.frameCount else { throw FormatError("bytes after the frame") }
    guard checksum(bytes) == header.checksum else { throw FormatError("checksums differ") }
    let stored = try bytes.slice(headerBytes, header.storedCount)
    guard header.codec != .none else { return (header.kind, [UInt8](copying: stored)) }
    var headStart = 0
    var headCount = 0
    if header.codec == .zstdBehindHead {
      (headStart, headCount) = (4, Int(try stored.u32(at: 0)))
      guard headCount > 0, headCount < header.rawCount, headCount <= stored.byteCount - 4 else {
        throw FormatError("the head of a message has a length out of bounds")
      }
    }
    let bodyStart = headStart + headCount
    let body = try stored.slice(bodyStart, stored.byteCount - bodyStart)
    var raw: [UInt8] = []
    try contexts.withDecompressor { (decompressor) throws(FormatError) in
      try decompressor.decompress(body, into: &raw, rawCount: header.rawCount - headCount)
    }
    if headCount > 0 { raw = [UInt8](copying: try stored.slice(headStart, headCount)) + raw }
    return (header.kind, raw)
  }

  /// The checksum of header and message, without its own field.
  package static func checksum(_ bytes: RawSpan) -> UInt32 {
    let head = CRC32C.checksum(bytes.extracting(first: checksumOffset))
    return CRC32C.checksum(bytes.extracting(headerBytes..<bytes.byteCount), seed: head)
  }

  static let checksumOffset = 16
  /// Shorter messages do not get shorter by compression.
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

/// The compression of the message in a frame of the sync protocol.
public enum WireCodec: UInt8, Sendable, Hashable, CaseIterable {
  /// The message is not compressed.
  case none = 0
  /// The message is one zstd frame without dictionary, if that is shorter than the message.
  case zstd = 1
  /// The head of the message is uncompressed, and the rest is as with ``zstd``. This lets a server
  /// compress the entries of a page once for several readers. For a message to one reader, a coder
  /// with this codec does the same as with ``zstd``.
  case zstdBehindHead = 2
}

/// The bytes of a message, or of the rest after its head, as they are in a frame.
package struct WireBody: Sendable {
  let rawCount: Int
  let stored: [UInt8]
  let isCompressed: Bool
}

extension PeerError {
  /// A broken or hostile message.
  package init(_ error: FormatError) { self.init(.malformed, error.reason) }
}
