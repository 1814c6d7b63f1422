internal import TidemarkEngine

// SAFETY: what is read lies within a span whose length was compared before, or whose library
// compares it, and no pointer leaves the call that it was lent for.

extension [UInt8] {
  /// The characters of UTF-8 bytes.
  func string(_ range: Range<Int>) -> String {
    let part = span.extracting(range)
    return unsafe part.withUnsafeBufferPointer { unsafe String(decoding: $0, as: UTF8.self) }
  }
}

extension RawSpan {
  /// Whether both hold the same bytes, which are few.
  @inline(__always)
  func isSame(as other: RawSpan) -> Bool {
    guard byteCount == other.byteCount else { return false }
    var offset = 0
    while offset < byteCount {
      if byte(offset) != other.byte(offset) { return false }
      offset &+= 1
    }
    return true
  }
}
