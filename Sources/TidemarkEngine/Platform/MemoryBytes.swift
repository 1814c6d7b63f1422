/// A file's content in memory, in chunks, so that growing copies nothing and space that was
/// allocated but never written takes no memory.
struct MemoryBytes: Sendable {
  /// Longest content; the bound keeps the table of chunks small.
  static let limit = 1 << 36
  private static let chunkBytes = 64 << 10

  private(set) var length = 0
  /// Each chunk holds at most `chunkBytes` bytes; those that it lacks up to there read as zeros.
  private var chunks: [[UInt8]] = []

  /// Cuts or extends with zeros. `length` is from 0 to ``limit``.
  mutating func resize(to length: Int) {
    let count = (length + Self.chunkBytes - 1) / Self.chunkBytes
    if count < chunks.count {
      chunks.removeLast(chunks.count - count)
    } else {
      chunks.append(contentsOf: repeatElement([], count: count - chunks.count))
    }
    // Bytes behind the new end must read as zeros if the file grows again.
    if length < self.length, let last = chunks.indices.last {
      let excess = chunks[last].count - (length - last * Self.chunkBytes)
      if excess > 0 { chunks[last].removeLast(excess) }
    }
    self.length = length
  }

  /// Overwrites and extends; `offset` plus the bytes' length is at most ``limit``.
  mutating func write(_ bytes: RawSpan, at offset: Int) {
    if bytes.isEmpty { return }
    let end = offset + bytes.byteCount
    if end > length { resize(to: end) }
    var done = 0
    while done < bytes.byteCount {
      let (index, start) = (offset + done).quotientAndRemainder(dividingBy: Self.chunkBytes)
      let count = min(Self.chunkBytes - start, bytes.byteCount - done)
      let piece = bytes.extracting(done..<(done + count))
      Self.store(piece, in: &chunks[index], at: start)
      done += count
    }
  }

  /// Copies into `buffer` what there is from `offset` on.
  /// - Returns: how many bytes were copied.
  func read(into buffer: inout MutableRawSpan, at offset: Int) -> Int {
    let total = min(buffer.byteCount, max(0, length - offset))
    var done = 0
    while done < total {
      let (index, start) = (offset + done).quotientAndRemainder(dividingBy: Self.chunkBytes)
      let count = min(Self.chunkBytes - start, total - done)
      let chunk = chunks[index]
      let held = min(count, max(0, chunk.count - start))
      if held > 0 {
        buffer.store(copying: chunk.rawSpan.extracting(start..<(start + held)), at: done)
      }
      for zero in held..<count {
        buffer.storeBytes(of: 0, toByteOffset: done + zero, as: UInt8.self)
      }
      done += count
    }
    return total
  }

  private static func store(_ bytes: RawSpan, in chunk: inout [UInt8], at start: Int) {
    if start > chunk.count {
      chunk.append(contentsOf: repeatElement(0, count: start - chunk.count))
    }
    let overlap = min(bytes.byteCount, chunk.count - start)
    if overlap > 0 {
      chunk.withMutableRawSpan { $0.store(copying: bytes.extracting(first: overlap), at: start) }
    }
    chunk.append(copying: bytes.extracting(droppingFirst: overlap))
  }
}
