/// Lends zstd's contexts (compressors and decompressors), which are costly to create, to any number
/// of threads. Each call leaves a context ready for the next one, also when it fails.
///
/// A bounded number of idle ones is kept; more are created when they are needed, and freed after.
package final class ZstdContexts: Sendable {
  private struct Idle {
    var decompressors: [ZstdDecompressor] = []
    var compressors: [ZstdCompressor] = []
  }

  private let limit: Int
  private let idle = Lock(Idle())

  /// - Parameter limit: how many idle contexts of each sort to keep.
  package init(limit: Int = 4) { self.limit = max(limit, 1) }

  /// Calls `body` with a decompressor that nobody else uses meanwhile.
  package func withDecompressor<R, E: Error>(
    _ body: (ZstdDecompressor) throws(E) -> R
  ) throws(E) -> R {
    let context = idle.withLock { $0.decompressors.popLast() } ?? ZstdDecompressor()
    defer {
      idle.withLock { if $0.decompressors.count < limit { $0.decompressors.append(context) } }
    }
    return try body(context)
  }

  /// Calls `body` with a compressor that nobody else uses meanwhile; see ``ZstdCompressor``.
  package func withCompressor<R, E: Error>(
    level: Int32, dictionary: ZstdDictionary? = nil, _ body: (ZstdCompressor) throws(E) -> R
  ) throws(E) -> R {
    let found = idle.withLock { idle -> ZstdCompressor? in
      let index = idle.compressors.lastIndex { $0.level == level && $0.dictionary === dictionary }
      return index.map { idle.compressors.remove(at: $0) }
    }
    let context = found ?? ZstdCompressor(level: level, dictionary: dictionary)
    defer {
      // The context that was idle longest makes room; it is freed after the lock is released.
      _ = idle.withLock { idle -> ZstdCompressor? in
        idle.compressors.append(context)
        return idle.compressors.count > limit ? idle.compressors.removeFirst() : nil
      }
    }
    return try body(context)
  }

  package var idleCount: Int { idle.withLock { $0.decompressors.count + $0.compressors.count } }
}
