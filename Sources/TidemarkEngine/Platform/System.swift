// The C library is imported in this folder only; the rest of the engine knows no system.

#if canImport(Glibc)
  internal import Glibc
#elseif canImport(Musl)
  internal import Musl
#elseif canImport(Darwin)
  internal import Darwin
#endif

// SAFETY: callers pass buffers of at least `count` bytes.
@inline(__always)
func compareBytes(
  _ a: UnsafeRawBufferPointer, _ b: UnsafeRawBufferPointer, _ count: Int
) -> Int {
  guard count > 0, let x = a.baseAddress, let y = b.baseAddress else { return 0 }
  return unsafe Int(memcmp(x, y, count))
}
