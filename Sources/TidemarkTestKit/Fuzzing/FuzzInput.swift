internal import TidemarkEngine

/// An input: a byte of options, and what is to be decoded.
struct FuzzInput {
  /// Bit 0: whether checksums are made right; the others are the target's.
  let options: UInt8
  let body: [UInt8]

  init(_ bytes: [UInt8]) {
    options = bytes.first ?? 0
    body = Array(bytes.dropFirst())
  }

  /// Whether checksums, magic numbers and sync words are made right before decoding.
  var repairs: Bool { flag(0) }

  /// One of the options.
  func flag(_ bit: Int) -> Bool { options >> UInt8(bit) & 1 == 1 }

  /// Some of the body; fewer bytes where it ends.
  func slice(_ start: Int, _ count: Int) -> [UInt8] {
    guard start < body.count else { return [] }
    return Array(body[start..<min(body.count, start + count)])
  }
}

extension [UInt8] {
  /// Numbers within the bytes; 0 where these end too early.
  func word16(_ offset: Int) -> UInt16 { (try? rawSpan.u16(at: offset)) ?? 0 }
  func word32(_ offset: Int) -> UInt32 { (try? rawSpan.u32(at: offset)) ?? 0 }
  func word64(_ offset: Int) -> UInt64 { (try? rawSpan.u64(at: offset)) ?? 0 }

  /// Writes a number over bytes that are there; does nothing where they are not.
  mutating func set<T: FixedWidthInteger>(_ value: T, at offset: Int) {
    let size = T.bitWidth / 8
    guard offset >= 0, offset <= count - size else { return }
    for i in 0..<size { self[offset + i] = UInt8(truncatingIfNeeded: value >> (8 * i)) }
  }
}
