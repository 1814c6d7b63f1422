#if BundledZstd
  internal import libzstd
#else
  internal import CZstd
#endif

// SAFETY: the context is this object's alone and freed with it; every buffer is passed with its
// own length, and only what zstd says it wrote counts as written.

/// Decompresses single zstd frames of a known raw length. Not thread-safe.
///
/// Input may be hostile: nothing is allocated beyond the raw length that the caller states, and
/// input that cannot be one frame of that length is refused before anything is allocated.
@safe
package final class ZstdDecompressor {
  private let context: OpaquePointer

  package init() {
    guard let context = unsafe ZSTD_createDCtx() else { preconditionFailure("out of memory") }
    unsafe self.context = context
  }

  deinit { unsafe ZSTD_freeDCtx(context) }

  /// Replaces `output` with the content of a frame.
  /// - Parameters:
  ///   - source: exactly one frame.
  ///   - output: gets the content; its storage is used again when it is large enough. Holds
  ///     nothing of use after an error.
  ///   - rawCount: how many bytes the frame must give; the caller bounds it.
  ///   - dictionary: the dictionary that the frame was written with.
  package func decompress(
    _ source: RawSpan, into output: inout [UInt8], rawCount: Int,
    dictionary: ZstdDictionary? = nil
  ) throws(FormatError) {
    try Self.check(source, rawCount: rawCount)
    if output.capacity < rawCount { output = [] }
    output.removeAll(keepingCapacity: true)
    var result = 0
    unsafe output.append(atMost: rawCount) { target in
      result = unsafe decode(source, target, dictionary)
      return ZSTD_isError(result) == 0 ? result : 0
    }
    try Self.check(result, rawCount: rawCount)
  }

  /// The same into `target`, whose length the content must have exactly.
  package func decompress(
    _ source: RawSpan, into target: inout MutableRawSpan, dictionary: ZstdDictionary? = nil
  ) throws(FormatError) {
    let rawCount = target.byteCount
    try Self.check(source, rawCount: rawCount)
    let result = unsafe target.withUnsafeMutableBytes { unsafe decode(source, $0, dictionary) }
    try Self.check(result, rawCount: rawCount)
  }

  @unsafe
  private func decode(
    _ source: RawSpan, _ target: UnsafeMutableRawBufferPointer, _ dictionary: ZstdDictionary?
  ) -> Int {
    unsafe source.withUnsafeBytes {
      unsafe ZSTD_decompress_usingDDict(
        context, target.baseAddress, target.count, $0.baseAddress, $0.count,
        dictionary?.forDecompression)
    }
  }

  /// Refuses what cannot be one frame of that length, before anything is allocated for it.
  private static func check(_ source: RawSpan, rawCount: Int) throws(FormatError) {
    // Without this check the library would also accept skippable frames and its formats before 1.0.
    guard try source.u32(at: 0) == ZSTD_MAGICNUMBER else { throw FormatError("no zstd frame") }
    let (length, stated) = unsafe source.withUnsafeBytes {
      unsafe (
        ZSTD_findFrameCompressedSize($0.baseAddress, $0.count),
        ZSTD_getFrameContentSize($0.baseAddress, $0.count)
      )
    }
    if ZSTD_isError(length) != 0 { throw FormatError(zstdCode: length) }
    guard length == source.byteCount else { throw FormatError("bytes after the zstd frame") }
    // The macro ZSTD_CONTENTSIZE_UNKNOWN, which Swift does not import.
    let isUnknown = stated == .max
    guard rawCount >= 0, isUnknown || stated == UInt64(rawCount) else {
      throw FormatError("the zstd frame has another length than it should")
    }
    // A block of a frame takes at least four bytes and decompresses to at most 128 KiB.
    guard rawCount / (128 << 10) <= source.byteCount / 4 else {
      throw FormatError("the zstd frame is too short for its length")
    }
  }

  private static func check(_ result: Int, rawCount: Int) throws(FormatError) {
    if ZSTD_isError(result) != 0 { throw FormatError(zstdCode: result) }
    guard result == rawCount else {
      throw FormatError("the zstd frame has another length than it should")
    }
  }
}
