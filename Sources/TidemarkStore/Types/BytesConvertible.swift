// SAFETY: a string's contiguous bytes live for the duration of the call that lends them, and the
// span made of them does not leave it.

/// A type that can stand for a key, a value or a label: bytes, or text as its UTF-8 bytes.
///
/// `String`, `Substring`, `[UInt8]`, `ArraySlice<UInt8>`, ``Key`` and ``EntryLabel`` conform;
/// `import TidemarkFoundation` adds `Data`, `UUID` and `URL`. A type of yours lends its bytes:
///
/// ```swift
/// extension NoteID: BytesConvertible {
///   public func withBytes<R, E: Error>(_ body: (RawSpan) throws(E) -> R) throws(E) -> R {
///     try text.withBytes(body)
///   }
/// }
/// ```
public protocol BytesConvertible {
  /// Calls `body` with the value's bytes, which are valid only during the call.
  /// - Returns: the result of `body`.
  /// - Throws: the error of `body`.
  func withBytes<R, E: Error>(_ body: (RawSpan) throws(E) -> R) throws(E) -> R
}

extension [UInt8]: BytesConvertible {
  /// Calls `body` with the array's bytes.
  @inlinable @inline(__always)
  public func withBytes<R, E: Error>(_ body: (RawSpan) throws(E) -> R) throws(E) -> R {
    try body(unsafe span.bytes)
  }
}

extension ArraySlice<UInt8>: BytesConvertible {
  /// Calls `body` with the slice's bytes.
  @inlinable @inline(__always)
  public func withBytes<R, E: Error>(_ body: (RawSpan) throws(E) -> R) throws(E) -> R {
    try body(unsafe span.bytes)
  }
}

extension String: BytesConvertible {
  /// Calls `body` with the text's UTF-8 bytes.
  @inlinable @inline(__always)
  public func withBytes<R, E: Error>(_ body: (RawSpan) throws(E) -> R) throws(E) -> R {
    var text = self
    // `withUTF8` takes no closure with typed errors, so the outcome leaves it as a result.
    return try text.withUTF8 { buffer in
      let bytes = unsafe RawSpan(_unsafeBytes: UnsafeRawBufferPointer(buffer))
      return Result { () throws(E) in try body(bytes) }
    }.get()
  }
}

extension Substring: BytesConvertible {
  /// Calls `body` with the text's UTF-8 bytes.
  @inlinable @inline(__always)
  public func withBytes<R, E: Error>(_ body: (RawSpan) throws(E) -> R) throws(E) -> R {
    try String(self).withBytes(body)
  }
}
