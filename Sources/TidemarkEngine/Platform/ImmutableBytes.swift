// SAFETY: the memory is filled once in `init`, never written again and freed in `deinit`; whoever
// takes the buffer keeps the object.

/// Bytes in memory of their own that never change, so that spans into them need no access to
/// an array.
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

  /// The memory itself, for owners that hand out spans of their own lifetime.
  @unsafe package var buffer: UnsafeRawBufferPointer { unsafe UnsafeRawBufferPointer(memory) }
}
