#if BundledZstd
  import libzstd
#else
  import CZstd
#endif
import TidemarkEngine

/// Compresses a zstd file piece by piece, for tests of the decoder: the library itself compresses
/// whole blocks only.
final class ZstdStreamEncoder {
  private let context: OpaquePointer
  private let dictionary: ZstdDictionary?

  init(level: Int32, dictionary: ZstdDictionary? = nil) {
    guard let context = ZSTD_createCCtx() else { preconditionFailure("out of memory") }
    ZSTD_CCtx_setParameter(context, ZSTD_c_compressionLevel, level)
    ZSTD_CCtx_setParameter(context, ZSTD_c_checksumFlag, 1)
    if let dictionary {
      dictionary.bytes.withUnsafeBytes {
        _ = ZSTD_CCtx_loadDictionary(context, $0.baseAddress, $0.count)
      }
    }
    (self.context, self.dictionary) = (context, dictionary)
  }

  deinit { ZSTD_freeCCtx(context) }

  /// Appends what is ready of the next bytes, which may be nothing.
  func encode(_ input: RawSpan, appendingTo output: inout [UInt8]) {
    run(input, ZSTD_e_continue, appendingTo: &output)
  }

  /// Ends the frame; a later `encode` begins another one.
  func finish(appendingTo output: inout [UInt8]) {
    run([UInt8]().rawSpan, ZSTD_e_end, appendingTo: &output)
  }

  private func run(
    _ input: RawSpan, _ directive: ZSTD_EndDirective, appendingTo output: inout [UInt8]
  ) {
    var buffer = [UInt8](repeating: 0, count: ZSTD_CStreamOutSize())
    var read = 0
    while true {
      let (left, written) = input.withUnsafeBytes { source in
        buffer.withUnsafeMutableBytes { target in
          var from = ZSTD_inBuffer(src: source.baseAddress, size: source.count, pos: read)
          var to = ZSTD_outBuffer(dst: target.baseAddress, size: target.count, pos: 0)
          let left = ZSTD_compressStream2(context, &to, &from, directive)
          read = from.pos
          return (left, to.pos)
        }
      }
      precondition(ZSTD_isError(left) == 0)
      output += buffer[..<written]
      if directive == ZSTD_e_end ? left == 0 : read == input.byteCount { return }
    }
  }
}
