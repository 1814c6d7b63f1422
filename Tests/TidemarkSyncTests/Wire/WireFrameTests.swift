import Testing
import TidemarkEngine
import TidemarkTestKit

@testable import TidemarkSyncProtocol

@Suite("Frames")
struct WireFrameTests {
  private let coder = WireCoder(codec: .none)
  private let message = WireMessage.error(PeerError(.busy, "later"))

  /// The fault of a frame, in words; nil when nothing is.
  private func refusal(_ frame: [UInt8], limit: Int = WireFrame.defaultLimit) -> String? {
    do throws(PeerError) { _ = try WireCoder(limit: limit).decode(frame) } catch {
      #expect(error.kind == .malformed)
      return error.message
    }
    return nil
  }

  private func changed(_ offset: Int, _ value: UInt8) throws -> [UInt8] {
    var frame = try coder.encode(message)
    frame[offset] = value
    return WireTestFrame.repaired(frame)
  }

  @Test("the header says what comes and how long it is")
  func header() throws {
    let frame = try coder.encode(message)
    let header = try WireFrame.Header(frame.rawSpan, limit: WireFrame.defaultLimit)
    #expect(header.kind == .error && header.codec == .none)
    #expect(header.rawCount == header.storedCount && header.frameCount == frame.count)
    #expect(Array(frame[..<4]) == Array("TMSW".utf8))
  }

  @Test("bytes that are no frame of this version are refused, each for its reason")
  func foreign() throws {
    #expect(refusal([]) == "ends too early")
    #expect(refusal(try changed(0, 0)) == "no frame of the protocol")
    #expect(refusal(try changed(4, 2)) == "version 2 of the protocol is not known here")
    #expect(refusal(try changed(5, 0x0a)) == "message type 10 is not known here")
    #expect(refusal(try changed(6, 3)) == "codec 3 is not known here")
    #expect(refusal(try changed(7, 1)) == "a reserved byte is not zero")
    #expect(refusal(try changed(8, 200)) == "the lengths of a frame do not fit")
    var frame = try coder.encode(message)
    #expect(refusal(frame) == nil)
    #expect(refusal(frame + [0]) == "bytes after the frame")
    #expect(refusal(frame.dropLast()) == "ends too early")
    frame[frame.count - 1] ^= 1
    #expect(refusal(frame) == "checksums differ")
  }

  @Test("a frame that says it is longer than allowed is refused by its header alone")
  func limit() throws {
    var frame = try coder.encode(message)
    for i in 8..<16 { frame[i] = 0xff }
    #expect(refusal(frame)?.contains("longer than") == true)
    let raw = try coder.encode(message).count - WireFrame.headerBytes
    #expect(refusal(try coder.encode(message), limit: raw) == nil)
    #expect(refusal(try coder.encode(message), limit: raw - 1)?.contains("longer than") == true)
    #expect(throws: PeerError.self) { try WireCoder(limit: raw - 1, codec: .none).encode(message) }
  }

  @Test("a compressed message of another length than the header says is refused")
  func bombs() throws {
    let raw = [UInt8](repeating: 0, count: 900_000)
    var stored: [UInt8] = []
    try ZstdCompressor(level: 1).compress(raw.rawSpan, appendingTo: &stored)
    func frame(_ rawCount: Int) -> [UInt8] {
      WireTestFrame.frame(.error, codec: 1, rawCount: rawCount, stored)
    }
    #expect(refusal(frame(800_000)) == "the zstd frame has another length than it should")
    #expect(refusal(frame(1 << 20)) == "the zstd frame has another length than it should")
    // A frame of the right length is decompressed, and then no message.
    #expect(refusal(frame(900_000)) == "choice 0 is not known here")
    #expect(refusal(frame(900_000), limit: 800_000)?.contains("longer than") == true)
  }

  @Test("the head in front of a compressed rest is refused where its length is out of bounds")
  func heads() throws {
    let message = try WireTestFrame.raw(
      .error(PeerError(.busy, String(repeating: "later ", count: 50))))
    let head = Array(message.prefix(10))
    var rest: [UInt8] = []
    let tail = Array(message.dropFirst(10))
    try ZstdCompressor(level: 1).compress(tail.rawSpan, appendingTo: &rest)
    func frame(_ headCount: UInt32, rawCount: Int? = nil) -> [UInt8] {
      var stored = ByteWriter()
      stored.u32(headCount)
      stored.raw(head + rest)
      return WireTestFrame.frame(
        .error, codec: 2, rawCount: rawCount ?? message.count, stored.bytes)
    }
    #expect(refusal(frame(10)) == nil)
    let bounds = "the head of a message has a length out of bounds"
    for count in [0, UInt32(head.count + rest.count) + 1, UInt32(message.count), .max] {
      #expect(refusal(frame(count)) == bounds)
    }
    #expect(refusal(frame(9)) == "no zstd frame")
    #expect(
      refusal(frame(10, rawCount: message.count - 1))
        == "the zstd frame has another length than it should")
    let short = WireTestFrame.frame(.error, codec: 2, rawCount: 100, [1, 0])
    #expect(refusal(short) == "ends too early")
  }

  @Test("a message that does not become shorter is stored as it is")
  func incompressible() throws {
    var random = SeededGenerator(seed: 1)
    let keys = (0..<20).map { _ in random.bytes(40) }
    let replica = try #require(ReplicaID(random.bytes(16)))
    let frame = try WireCoder().encode(.valuesRequest(ValuesRequest(replica: replica, keys: keys)))
    #expect(try WireFrame.Header(frame.rawSpan, limit: WireFrame.defaultLimit).codec == .none)
  }
}

/// Frames made by hand.
enum WireTestFrame {
  static func frame(
    _ kind: WireMessage.Kind, codec: UInt8 = 0, rawCount: Int? = nil, _ stored: [UInt8]
  ) -> [UInt8] {
    var writer = ByteWriter()
    writer.raw(Array("TMSW".utf8))
    writer.raw([1, kind.rawValue, codec, 0])
    writer.u32(UInt32(rawCount ?? stored.count))
    writer.u32(UInt32(stored.count))
    writer.u32(0)
    writer.raw(stored)
    return repaired(writer.bytes)
  }

  /// The frame with the checksum that it should have.
  static func repaired(_ frame: [UInt8]) -> [UInt8] {
    var writer = ByteWriter()
    writer.raw(frame)
    var summed = frame
    summed.removeSubrange(16..<20)
    writer.patch(u32: CRC32C.checksum(summed.rawSpan), at: 16)
    return writer.bytes
  }

  /// The message in an uncompressed frame.
  static func raw(_ message: WireMessage) throws -> [UInt8] {
    Array(try WireCoder(codec: .none).encode(message).dropFirst(WireFrame.headerBytes))
  }
}
