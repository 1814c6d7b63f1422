#if BundledZstd
  internal import libzstd
#else
  internal import CZstd
#endif

// SAFETY: the context is this object's alone and freed with it; every buffer is passed with its
// own length, and only what zstd says it wrote counts as written.

/// Decompresses zstd files piece by piece: any number of frames, one after the other.
///
/// Input may be hostile: memory is bounded by the window that is allowed and by the pieces that
/// the caller asks for. Not thread-safe; of no use after an error.
@safe
package final class ZstdStreamDecoder {
  private let context: OpaquePointer
  private let dictionary: ZstdDictionary?
  /// The magic number of the next frame, as far as it was read. It has four bytes from then to the
  /// end of the frame, which empties it.
  private var magic: [UInt8] = []
  /// Whether a frame has ended.
  private var hasFrame = false

  /// - Parameters:
  ///   - windowLogMax: the binary logarithm of the greatest window, so of the memory, allowed.
  ///   - dictionary: the dictionary that the frames were written with.
  package init(windowLogMax: Int32 = 27, dictionary: ZstdDictionary? = nil) {
    guard let context = unsafe ZSTD_createDCtx() else { preconditionFailure("out of memory") }
    unsafe ZSTD_DCtx_setParameter(context, ZSTD_d_windowLogMax, windowLogMax)
    if let dictionary { unsafe ZSTD_DCtx_refDDict(context, dictionary.forDecompression) }
    self.dictionary = dictionary
    unsafe self.context = context
  }

  deinit { unsafe ZSTD_freeDCtx(context) }

  /// Appends the content that the next bytes of the file decode to.
  /// - Parameter limit: how many bytes to append at most; at least 1.
  /// - Returns: how many bytes of the input were used, so that the next call gets the rest again,
  ///   and whether no more content can be decoded before more input comes.
  package func decode(
    _ input: RawSpan, appendingTo output: inout [UInt8], atMost limit: Int
  ) throws(FormatError) -> (consumed: Int, needsInput: Bool) {
    var consumed = 0
    var room = Swift.max(limit, 1)
    // The loop ends: the library fails after some turns that neither use input nor give content.
    while true {
      if magic.count < 4 {
        consumed += try beginFrame(try input.slice(consumed, input.byteCount - consumed))
        if magic.count < 4 { return (consumed: consumed, needsInput: true) }
      }
      let rest = try input.slice(consumed, input.byteCount - consumed)
      let piece = Swift.min(room, ZSTD_DStreamOutSize())
      let (read, written, isEnd) = try run(rest, appendingTo: &output, capacity: piece)
      consumed += read
      room -= written
      if isEnd {
        magic = []
        hasFrame = true
      } else if written < piece, consumed == input.byteCount {
        return (consumed: consumed, needsInput: true)
      }
      if room == 0 { return (consumed: consumed, needsInput: false) }
    }
  }

  /// Tells the decoder that there is no more input.
  /// - Throws: when the input has ended within a frame or before the first one.
  package func finish() throws(FormatError) {
    guard hasFrame, magic.isEmpty else { throw FormatError("the zstd file ends too early") }
  }

  /// Reads the magic number of the next frame, or a part of it, and checks it: the library would
  /// also accept its formats before 1.0, whose decoders see little testing.
  /// - Returns: how many bytes it has used.
  private func beginFrame(_ input: RawSpan) throws(FormatError) -> Int {
    let count = Swift.min(4 - magic.count, input.byteCount)
    magic.append(copying: try input.slice(0, count))
    guard magic.count == 4 else { return count }
    let start = magic
    let number = try start.rawSpan.u32(at: 0)
    let isSkippable = number & 0xFFFF_FFF0 == 0x184D_2A50
    guard number == ZSTD_MAGICNUMBER || isSkippable else { throw FormatError("no zstd frame") }
    var nothing: [UInt8] = []
    let (read, _, _) = try run(start.rawSpan, appendingTo: &nothing, capacity: 0)
    guard read == 4 else { throw FormatError("no zstd frame") }
    return count
  }

  private func run(
    _ input: RawSpan, appendingTo output: inout [UInt8], capacity: Int
  ) throws(FormatError) -> (read: Int, written: Int, isEnd: Bool) {
    var result = 0
    var read = 0
    let before = output.count
    unsafe output.append(atMost: capacity) { target in
      unsafe input.withUnsafeBytes { source in
        var from = unsafe ZSTD_inBuffer(src: source.baseAddress, size: source.count, pos: 0)
        var to = unsafe ZSTD_outBuffer(dst: target.baseAddress, size: capacity, pos: 0)
        result = unsafe ZSTD_decompressStream(context, &to, &from)
        read = unsafe from.pos
        return unsafe to.pos
      }
    }
    if ZSTD_isError(result) != 0 { throw FormatError(zstdCode: result) }
    return (read, output.count - before, result == 0)
  }
}
