internal import CTidemark

// SAFETY: the C functions read exactly the bytes of the span, write exactly the 32 bytes of the
// array, and keep no pointer.

/// SHA-256 (FIPS 180-4) of bytes that come piece by piece.
package struct SHA256: Sendable {
  package static let byteCount = 32

  private var context = ctidemark_sha256()

  /// - Parameter isPortable: leaves the processor's instructions for SHA-256 unused.
  package init(isPortable: Bool = false) {
    unsafe ctidemark_sha256_begin(&context, isPortable ? 1 : 0)
  }

  package mutating func add(_ bytes: RawSpan) {
    unsafe bytes.withUnsafeBytes { unsafe ctidemark_sha256_add(&context, $0.baseAddress, $0.count) }
  }

  /// The hash of all bytes so far; more may be added afterwards.
  package var digest: [UInt8] {
    var context = context
    var digest = [UInt8](repeating: 0, count: Self.byteCount)
    unsafe digest.withUnsafeMutableBytes {
      unsafe ctidemark_sha256_finish(&context, $0.baseAddress)
    }
    return digest
  }

  /// What it takes to go on with the hash on any machine: eight words, the count of bytes so far,
  /// and those of the last block, which is not full.
  package var state: [UInt8] {
    var writer = ByteWriter()
    let words = context.state
    for word in [words.0, words.1, words.2, words.3, words.4, words.5, words.6, words.7] {
      writer.u32(word)
    }
    writer.u64(context.length)
    let rest = Int(context.length % 64)
    unsafe withUnsafeBytes(of: context.block) { writer.raw(unsafe Array($0.prefix(rest))) }
    return writer.bytes
  }

  /// Goes on from a ``state``.
  package init(state: [UInt8]) throws(FormatError) {
    self.init()
    var reader = ByteReader(state.rawSpan)
    context.state = (
      try reader.u32(), try reader.u32(), try reader.u32(), try reader.u32(), try reader.u32(),
      try reader.u32(), try reader.u32(), try reader.u32()
    )
    let length = try reader.u64()
    let rest = try reader.array(Int(length % 64))
    context.length = length - UInt64(rest.count)
    add(rest.rawSpan)
  }

  package static func hash(_ bytes: RawSpan) -> [UInt8] {
    var hash = Self()
    hash.add(bytes)
    return hash.digest
  }
}
