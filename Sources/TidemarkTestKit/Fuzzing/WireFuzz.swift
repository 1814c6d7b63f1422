internal import TidemarkEngine
internal import TidemarkSyncProtocol

/// Decodes frames and messages as JSON; what is decoded must be the same after another round in
/// either coding.
enum WireFuzz {
  private static let coder = WireCoder(codec: .none)
  private static let headerBytes = WireFrame.headerBytes

  /// Options: bit 0, magic, version and checksum are made right; bit 1, there is no header but the
  /// message's type and the message, uncompressed; bit 2, the lengths are made to fit.
  static func run(_ input: FuzzInput) throws(FuzzFinding) {
    var frame = input.body
    if input.flag(1) {
      guard let kind = frame.first else { return }
      frame = self.frame(kind, Array(frame.dropFirst()))
    } else if input.repairs {
      repair(&frame, fits: input.flag(2))
    }
    guard let message = try? coder.decode(frame) else { return }
    guard let bytes = try? coder.encode(message) else {
      throw FuzzFinding("a message that was decoded cannot be encoded")
    }
    try compare(try? coder.decode(bytes), message.normalized, "frame")
    // A frame of the same length without compression has no optional fields, so it is the only
    // frame of its message.
    if frame.count == bytes.count, frame[6] == 0, message == message.normalized {
      guard frame == bytes else { throw FuzzFinding("a message has two codings") }
    }
    try roundTrip(json: message)
  }

  /// No options: a text.
  static func runJSON(_ input: FuzzInput) throws(FuzzFinding) {
    guard let message = try? coder.decodeJSON(input.body) else { return }
    try roundTrip(json: message)
    guard let bytes = try? coder.encode(message) else {
      throw FuzzFinding("a message from JSON cannot be put into a frame")
    }
    try compare(try? coder.decode(bytes), message.normalized, "frame")
  }

  private static func roundTrip(json message: WireMessage) throws(FuzzFinding) {
    let text: [UInt8]
    do throws(PeerError) { text = try coder.encodeJSON(message) } catch {
      // Runs of verdicts are short in a frame only.
      guard error.message.hasSuffix("too long") else { throw FuzzFinding("no JSON: \(error)") }
      return
    }
    try compare(try? coder.decodeJSON(text), message.normalized, "JSON")
  }

  private static func compare(
    _ again: WireMessage?, _ message: WireMessage, _ coding: String
  ) throws(FuzzFinding) {
    guard let again else { throw FuzzFinding("a \(coding) that was written cannot be read") }
    guard again == message else { throw FuzzFinding("a message changes as \(coding)") }
  }

  /// An uncompressed frame.
  private static func frame(_ kind: UInt8, _ raw: [UInt8]) -> [UInt8] {
    var writer = ByteWriter()
    writer.zeros(5)
    writer.u8(kind)
    writer.u16(0)
    writer.u32(UInt32(raw.count))
    writer.zeros(8)
    writer.raw(raw)
    repair(&writer.bytes, fits: true)
    return writer.bytes
  }

  private static func repair(_ frame: inout [UInt8], fits: Bool) {
    guard frame.count >= headerBytes else { return }
    frame.replaceSubrange(0..<5, with: Array("TMSW".utf8) + [WireFrame.version])
    if fits {
      frame[7] = 0
      frame.set(UInt32(frame.count - headerBytes), at: 12)
      if frame[6] == 0 { frame.set(UInt32(frame.count - headerBytes), at: 8) }
    }
    let head = CRC32C.checksum(frame.rawSpan.extracting(0..<16))
    let sum = CRC32C.checksum(frame.rawSpan.extracting(headerBytes..<frame.count), seed: head)
    frame.set(sum, at: 16)
  }

  static func seeds() -> [[UInt8]] {
    var seeds: [[UInt8]] = []
    for sample in WireSamples.messages {
      guard let frame = try? coder.encode(sample.message),
        let dense = try? WireCoder(codec: .zstd).encode(sample.message)
      else { continue }
      seeds.append([2, sample.message.kind.rawValue] + frame.dropFirst(headerBytes))
      seeds.append([5] + frame)
      if dense != frame { seeds.append([5] + dense) }
      if case .pullAnswer(let page) = sample.message,
        let shared = try? WireCoder().encode(page, WireCoder().body(of: page))
      {
        seeds.append([5] + shared)
      }
    }
    return seeds
  }

  static func jsonSeeds() -> [[UInt8]] {
    WireSamples.messages.compactMap { sample in
      (try? coder.encodeJSON(sample.message)).map { [0] + $0 }
    }
  }
}
