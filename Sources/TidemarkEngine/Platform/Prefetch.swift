internal import CTidemark

// SAFETY: a prefetch reads nothing and cannot fault, whatever the address.

extension RawSpan {
  /// Asks the processor for the first 512 of these bytes, so that it loads their cache lines of 64
  /// bytes at the same time, and not one after the other.
  @inline(__always)
  func prefetch() {
    unsafe withUnsafeBytes { bytes in
      guard let base = bytes.baseAddress, bytes.count > 0 else { return }
      var offset = 0
      let end = min(bytes.count, 512)
      while offset < end {
        unsafe ctidemark_prefetch(base + offset)
        offset &+= 64
      }
      // The bytes seldom begin where a cache line does, so that they end in one line more.
      unsafe ctidemark_prefetch(base + end - 1)
    }
  }
}

/// Asks the processor for the first bytes of an object that will soon be retained.
/// - Parameter value: a value whose first word is the reference; any other word does no harm.
@inline(__always)
func prefetchObject<Value>(_ value: borrowing Value) {
  guard MemoryLayout<Value>.size >= MemoryLayout<UInt>.size else { return }
  unsafe withUnsafeBytes(of: value) { bytes in
    let address = unsafe bytes.loadUnaligned(as: UInt.self)
    guard let object = unsafe UnsafeRawPointer(bitPattern: address) else { return }
    unsafe prefetch(object)
    unsafe prefetch(object + 64)
  }
}

@unsafe
@inline(__always)
func prefetch(_ address: UnsafeRawPointer) { unsafe ctidemark_prefetch(address) }
