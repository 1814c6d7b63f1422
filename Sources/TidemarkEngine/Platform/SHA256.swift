internal import CTidemark

// SAFETY: the C functions read exactly the bytes of the span, write exactly the 32 bytes of the
// array, and keep no pointer.

/// SHA-256 (FIPS 180-4) of bytes that come piece by piece.
package struct SHA256: Sendable {
  /// The length of a hash.
  package static let byteCount = 32

  private var context = ctidemark_sha256()

  /// Begins a hash.
  /// - Parameter isPortable: leaves the processor's instructions for SHA-256 unused.
  package init(isPortable: Bool = false) {
    unsafe ctidemark_sha256_begin(&context, isPortable ? 1 : 0)
  }

  /// Appends bytes to what is hashed.
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

  package static func hash(_ bytes: RawSpan) -> [UInt8] {
    var hash = Self()
    hash.add(bytes)
    return hash.digest
  }
}
