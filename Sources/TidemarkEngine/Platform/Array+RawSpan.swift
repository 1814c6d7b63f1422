// SAFETY: bytes have no padding and no invalid patterns, so viewing an array of them as raw
// memory, for reading or for writing, is always right; the spans cannot outlive the array.
// Counts that C reports as written are checked against the space by the standard library. Joined
// bytes are written whole before anybody sees them, and gone when `body` has returned.

extension [UInt8] {
  @inlinable
  package var rawSpan: RawSpan { @_lifetime(borrow self) get { unsafe span.bytes } }

  /// Calls `body` with the array's bytes for writing.
  package mutating func withMutableRawSpan<R, E: Error>(
    _ body: (inout MutableRawSpan) throws(E) -> R
  ) throws(E) -> R {
    var elements = mutableSpan
    var bytes = unsafe elements.mutableBytes
    return try body(&bytes)
  }

  @usableFromInline
  package init(copying bytes: RawSpan) {
    self = unsafe bytes.withUnsafeBytes { unsafe [UInt8]($0) }
  }

  /// Appends what `body` writes into space that was set aside for it, without clearing it first.
  /// - Parameters:
  ///   - capacity: the length of the space.
  ///   - body: writes to the space from its beginning on and returns how much.
  @unsafe
  mutating func append(atMost capacity: Int, _ body: (UnsafeMutableRawBufferPointer) -> Int) {
    guard capacity > 0 else {
      // The library's call below writes a zero into the empty array that all threads share.
      _ = unsafe body(UnsafeMutableRawBufferPointer(start: nil, count: 0))
      return
    }
    append(addingCapacity: capacity) { span in
      unsafe span.withUnsafeMutableBufferPointer { target, written in
        written = unsafe body(UnsafeMutableRawBufferPointer(target))
      }
    }
  }

  @usableFromInline
  package mutating func append(copying bytes: RawSpan) {
    unsafe bytes.withUnsafeBytes { unsafe append(contentsOf: $0) }
  }
}

/// Calls `body` with `first` and `second` as one span; takes heap memory only where they are long.
@inlinable
@inline(__always)
package func withJoined<R, E: Error>(
  _ first: RawSpan, _ second: RawSpan, _ body: (RawSpan) throws(E) -> R
) throws(E) -> R {
  let length = first.byteCount + second.byteCount
  guard length <= 256 else {
    var joined = [UInt8](copying: first)
    joined.append(copying: second)
    return try body(joined.rawSpan)
  }
  // A room of fixed length is on the stack for certain, which saves the code for one that is not.
  return unsafe try withUnsafeTemporaryAllocation(byteCount: 256, alignment: 8) {
    (buffer) throws(E) -> R in
    unsafe first.withUnsafeBytes { unsafe buffer.copyMemory(from: $0) }
    unsafe second.withUnsafeBytes {
      unsafe UnsafeMutableRawBufferPointer(rebasing: buffer[first.byteCount...])
        .copyMemory(from: $0)
    }
    return try body(
      unsafe RawSpan(_unsafeBytes: UnsafeRawBufferPointer(rebasing: buffer[..<length])))
  }
}

extension RawSpan {
  package func isEqual(to other: RawSpan) -> Bool {
    guard byteCount == other.byteCount else { return false }
    return unsafe withUnsafeBytes { a in
      unsafe other.withUnsafeBytes { b in unsafe compareBytes(a, b, a.count) == 0 }
    }
  }

  /// Compares in byte order: below zero when this sorts before `other`, zero when both are equal.
  package func compare(to other: RawSpan) -> Int {
    let common = Swift.min(byteCount, other.byteCount)
    let order = unsafe withUnsafeBytes { a in
      unsafe other.withUnsafeBytes { b in unsafe compareBytes(a, b, common) }
    }
    return order != 0 ? order : byteCount - other.byteCount
  }
}

extension MutableRawSpan {
  /// Copies bytes to `offset`; there must be room for all of them.
  package mutating func store(copying bytes: RawSpan, at offset: Int) {
    precondition(offset >= 0 && bytes.byteCount <= byteCount - offset, "out of bounds")
    unsafe withUnsafeMutableBytes { target in
      unsafe bytes.withUnsafeBytes {
        unsafe UnsafeMutableRawBufferPointer(rebasing: target[offset...]).copyMemory(from: $0)
      }
    }
  }
}
