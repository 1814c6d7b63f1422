internal import CZstd

// SAFETY: the context is this object's alone and freed with it; every buffer is passed with its
// own length, and only what zstd says it wrote counts as written.

/// Compresses a zstd file piece by piece. Not thread-safe.
@safe
package final class ZstdStreamEncoder {
  private let context: OpaquePointer
  private let dictionary: ZstdDictionary?

  /// Creates an encoder.
  /// - Parameters:
  ///   - level: zstd's level; brought within what the library offers.
  ///   - checksum: whether frames end with a checksum of their content.
  ///   - dictionary: a dictionary that readers need too.
  package init(level: Int32, checksum: Bool = true, dictionary: ZstdDictionary? = nil) {
    guard let context = unsafe ZSTD_createCCtx() else { preconditionFailure("out of memory") }
    let level = Swift.min(Swift.max(level, ZSTD_minCLevel()), ZSTD_maxCLevel())
    unsafe ZSTD_CCtx_setParameter(context, ZSTD_c_compressionLevel, level)
    unsafe ZSTD_CCtx_setParameter(context, ZSTD_c_checksumFlag, checksum ? 1 : 0)
    if let dictionary {
      unsafe dictionary.bytes.withUnsafeBytes {
        _ = unsafe ZSTD_CCtx_loadDictionary(context, $0.baseAddress, $0.count)
      }
    }
    self.dictionary = dictionary
    unsafe self.context = context
  }

  deinit { unsafe ZSTD_freeCCtx(context) }

  /// Compresses the next bytes and appends what is ready, which may be nothing.
  /// - Throws: when memory runs out; the encoder is of no use then.
  package func encode(
    _ input: RawSpan, appendingTo output: inout [UInt8]
  ) throws(FormatError) { try run(input, ZSTD_e_continue, appendingTo: &output) }

  /// Ends the frame; a later ``encode(_:appendingTo:)`` begins another one.
  /// - Throws: when memory runs out; the encoder is of no use then.
  package func finish(appendingTo output: inout [UInt8]) throws(FormatError) {
    try run([UInt8]().rawSpan, ZSTD_e_end, appendingTo: &output)
  }

  private func run(
    _ input: RawSpan, _ directive: ZSTD_EndDirective, appendingTo output: inout [UInt8]
  ) throws(FormatError) {
    var read = 0
    while true {
      var result = 0
      let rest = try input.slice(read, input.byteCount - read)
      unsafe output.append(atMost: ZSTD_CStreamOutSize()) { target in
        unsafe rest.withUnsafeBytes { source in
          var from = unsafe ZSTD_inBuffer(src: source.baseAddress, size: source.count, pos: 0)
          var to = unsafe ZSTD_outBuffer(dst: target.baseAddress, size: target.count, pos: 0)
          result = unsafe ZSTD_compressStream2(context, &to, &from, directive)
          read += unsafe from.pos
          return unsafe to.pos
        }
      }
      if ZSTD_isError(result) != 0 { throw FormatError(zstdCode: result) }
      // The end is reached when zstd keeps nothing back (0); between pieces it may keep bytes.
      let isDone = directive == ZSTD_e_end ? result == 0 : read == input.byteCount
      if isDone { return }
    }
  }
}
