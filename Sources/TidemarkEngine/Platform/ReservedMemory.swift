internal import Synchronization

// SAFETY: the mapping lives as long as the object. A chunk is written only inside `load`, under a
// lock, until its flag is set; that has release order, after the last write, and is read with
// acquire order before the first read, so whoever sees the flag sees the bytes, which never change
// again.
// Ranges are checked against the length.

/// Address space for the content of a file, which is loaded in chunks and then read in place.
///
/// Reserving takes no memory; a chunk takes some once it is loaded. Unlike with a mapped file, a
/// failing disk is an error where the chunk is loaded, not a signal where it is read.
@safe
package final class ReservedMemory: @unchecked Sendable {
  /// Bytes in a chunk; the last one may have fewer.
  package let chunkBytes: Int
  package let byteCount: Int
  private let shift: Int
  private let base: UnsafeMutableRawPointer
  private let flags: UnsafeMutablePointer<Atomic<UInt8>>
  private let loadedCount = Atomic<Int>(0)
  /// Held while chunks are filled, so that each is filled once. Whether filling several at a time
  /// has failed: then they come one by one, and the others do not ask for a bad sector again.
  private let loading = Lock(false)

  /// Reserves address space, also for 0 bytes.
  /// - Parameter chunkShift: the logarithm of the chunk size; a chunk is at least a page.
  package init(byteCount: Int, chunkShift: Int) throws(FileSystemError) {
    self.byteCount = byteCount
    shift = chunkShift
    chunkBytes = 1 << chunkShift
    do { unsafe base = try reserveMemory(max(byteCount, 1)) } catch {
      throw FileSystemError(.allocate, path: "", number: error.number)
    }
    let chunks = (byteCount + chunkBytes - 1) >> chunkShift
    unsafe flags = .allocate(capacity: max(chunks, 1))
    for i in 0..<chunks { unsafe (flags + i).initialize(to: Atomic(0)) }
  }

  deinit {
    unsafe releaseMemory(base, max(byteCount, 1))
    unsafe flags.deallocate()
  }

  /// Bytes of memory in use; a last chunk that is shorter counts as a whole one.
  package var loadedBytes: Int { loadedCount.load(ordering: .relaxed) << shift }

  /// Whether a chunk may be read.
  @inline(__always)
  package func isLoaded(_ chunk: Int) -> Bool {
    precondition(chunk >= 0 && chunk << shift < byteCount)
    return unsafe flags[chunk].load(ordering: .acquiring) != 0
  }

  /// Fills a chunk unless that was done before, and missing ones beside it. The more chunks were
  /// needed so far, the more come at a time: few bytes for who looks at little, and few reads for
  /// who will need everything.
  /// - Parameters:
  ///   - part: the chunks that one read can give.
  ///   - body: fills some chunks. If it throws, it is asked once more for the wanted one alone.
  package func load<E: Error>(
    _ chunk: Int, in part: Range<Int>,
    _ body: (_ chunks: Range<Int>, _ bytes: inout MutableRawSpan) throws(E) -> Void
  ) throws(E) {
    try loading.withLock { (hasFailed) throws(E) in
      // Another thread may have filled it meanwhile: bytes that others may read never change.
      if isLoaded(chunk) { return }
      let chunks = hasFailed ? chunk..<(chunk + 1) : missing(around: chunk, in: part)
      do throws(E) { try fill(chunks, body) } catch {
        guard chunks.count > 1 else { throw error }
        hasFailed = true
        try fill(chunk..<(chunk + 1), body)
      }
    }
  }

  private func fill<E: Error>(
    _ chunks: Range<Int>, _ body: (Range<Int>, inout MutableRawSpan) throws(E) -> Void
  ) throws(E) {
    let start = chunks.lowerBound << shift
    let count = min(chunks.upperBound << shift, byteCount) - start
    var bytes = unsafe MutableRawSpan(_unsafeStart: base + start, byteCount: count)
    try body(chunks, &bytes)
    for chunk in chunks { unsafe flags[chunk].store(1, ordering: .releasing) }
    loadedCount.add(chunks.count, ordering: .relaxed)
  }

  private static let mostChunksAtATime = 16

  /// The missing chunks next to one, which is missing, of its group of a power of two. Two come at
  /// a time once 32 chunks were loaded and a 64th of all, four once there are twice as many.
  private func missing(around chunk: Int, in part: Range<Int>) -> Range<Int> {
    let loaded = loadedCount.load(ordering: .relaxed)
    let oneByOne = max(32, byteCount >> shift / 64)
    var size = 1
    while size < Self.mostChunksAtATime, size * oneByOne <= loaded { size *= 2 }
    let start = chunk & ~(size - 1)
    let group = (start..<(start + size)).clamped(to: part)
    var (first, end) = (chunk, chunk + 1)
    while first > group.lowerBound, !isLoaded(first - 1) { first -= 1 }
    while end < group.upperBound, !isLoaded(end) { end += 1 }
    return first..<end
  }

  /// Bytes of chunks for which ``isLoaded(_:)`` was true, which is not checked here again.
  @_lifetime(borrow self)
  @inline(__always)
  package func bytes(_ offset: Int, _ count: Int) -> RawSpan {
    precondition(offset >= 0 && count >= 0 && offset <= byteCount && count <= byteCount - offset)
    let span = unsafe RawSpan(_unsafeStart: base + offset, byteCount: count)
    return unsafe _overrideLifetime(span, borrowing: self)
  }
}
