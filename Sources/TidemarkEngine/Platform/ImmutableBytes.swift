// SAFETY: the memory is filled once in `init`, never written again and freed in `deinit`; whoever
// takes the buffer keeps the object.

/// Bytes that never change, in memory of their own: a span into them lives as long as the object,
/// while one into an array ends with the access to the array.
@safe
package final class ImmutableBytes: @unchecked Sendable {
  private let memory: UnsafeMutableRawBufferPointer

  /// A copy of bytes.
  package init(copying bytes: [UInt8]) {
    unsafe memory = .allocate(byteCount: bytes.count, alignment: 8)
    unsafe memory.copyBytes(from: bytes)
  }

  deinit { unsafe memory.deallocate() }

  package var count: Int { unsafe memory.count }

  /// The memory itself, for owners of this object that lend spans as long as they live themselves.
  @unsafe package var buffer: UnsafeRawBufferPointer { unsafe UnsafeRawBufferPointer(memory) }
}
