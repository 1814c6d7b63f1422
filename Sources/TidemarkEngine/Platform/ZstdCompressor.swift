#if BundledZstd
  internal import libzstd
#else
  internal import CZstd
#endif

// SAFETY: the context is this object's alone and freed with it; every buffer is passed with its
// own length, and only what zstd says it wrote counts as written. The dictionary that a context
// refers to is kept alive beside it.

/// Compresses whole buffers to single zstd frames, one at a time. Not thread-safe.
///
/// Frames hold their raw length but neither a checksum nor a dictionary's id, since the file
/// formats around them have both.
@safe
package final class ZstdCompressor {
  package let level: Int32
  package let dictionary: ZstdDictionary?
  private let context: OpaquePointer

  /// - Parameters:
  ///   - level: zstd's level; brought within what the library offers.
  ///   - dictionary: best prepared for the same level.
  package init(level: Int32, dictionary: ZstdDictionary? = nil) {
    guard let context = unsafe ZSTD_createCCtx() else { preconditionFailure("out of memory") }
    let level = Swift.min(Swift.max(level, ZSTD_minCLevel()), ZSTD_maxCLevel())
    unsafe ZSTD_CCtx_setParameter(context, ZSTD_c_compressionLevel, level)
    unsafe ZSTD_CCtx_setParameter(context, ZSTD_c_checksumFlag, 0)
    unsafe ZSTD_CCtx_setParameter(context, ZSTD_c_dictIDFlag, 0)
    if let dictionary {
      // A prepared dictionary brings its own level along, which must be that of the context.
      if dictionary.level == level {
        unsafe ZSTD_CCtx_refCDict(context, dictionary.forCompression)
      } else {
        unsafe dictionary.bytes.withUnsafeBytes {
          _ = unsafe ZSTD_CCtx_loadDictionary(context, $0.baseAddress, $0.count)
        }
      }
    }
    self.level = level
    self.dictionary = dictionary
    unsafe self.context = context
  }

  deinit { unsafe ZSTD_freeCCtx(context) }

  /// Appends a frame with the bytes of `source`.
  /// - Returns: the length of the frame.
  /// - Throws: when memory runs out; then `output` is as before.
  @discardableResult
  package func compress(
    _ source: RawSpan, appendingTo output: inout [UInt8]
  ) throws(FormatError) -> Int {
    let capacity = ZSTD_compressBound(source.byteCount)
    if ZSTD_isError(capacity) != 0 { throw FormatError("too many bytes to compress") }
    var result = 0
    unsafe output.append(atMost: capacity) { target in
      result = unsafe source.withUnsafeBytes {
        unsafe ZSTD_compress2(context, target.baseAddress, target.count, $0.baseAddress, $0.count)
      }
      return ZSTD_isError(result) == 0 ? result : 0
    }
    if ZSTD_isError(result) != 0 { throw FormatError(zstdCode: result) }
    return result
  }
}

extension FormatError {
  /// An error in the words of the zstd library.
  init(zstdCode code: Int) {
    self.init("zstd: " + (unsafe String(cString: ZSTD_getErrorName(code))))
  }
}

/// The zstd library that the program runs with.
package enum ZstdLibrary {
  /// Its version, as in "1.5.7".
  package static var version: String {
    let number = ZSTD_versionNumber()
    return "\(number / 10_000).\(number / 100 % 100).\(number % 100)"
  }
}
