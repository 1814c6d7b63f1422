/// Walks a segment's frames from one offset on, checking every header and every front (the block
/// table and the heads, which are the entries without their values).
package struct FrameWalker {
  package enum Step {
    case frame(DecodedFront)
    /// No valid frame begins here, though a valid header may; the walker has not moved.
    case invalid(reason: FormatError, header: FrameHeader?)
  }

  package enum Piece {
    case frame(DecodedFront)
    /// No valid frame stands in these bytes.
    case damage(Damage)
  }

  package struct Damage {
    package var range: Range<Int>
    /// The frame's header, where that is intact and only what follows it is not.
    package var header: FrameHeader?
    package var reason: FormatError
  }

  package let salt: UInt32
  private let reader: WindowReader
  private let codecs: FrameCodecs
  /// Where the next frame is expected.
  package private(set) var offset: Int
  /// Where the frames end: the locator of a sealed segment, else the end of the file.
  package let end: Int
  /// Chained checksum of the headers passed so far; of no use after damage.
  package private(set) var chain: UInt64 = 0

  package init(
    _ reader: WindowReader, salt: UInt32, codecs: FrameCodecs, from offset: Int, end: Int? = nil
  ) {
    self.reader = reader
    self.salt = salt
    self.codecs = codecs
    self.offset = offset
    self.end = min(end ?? reader.length, reader.length)
  }

  /// Whether all frames have been passed.
  package var isAtEnd: Bool { offset >= end }

  /// The next frame, or why there is none; errors of the system are thrown.
  package mutating func next() throws(FileSystemError) -> Step {
    var header: FrameHeader?
    do throws(LogReadError) {
      let found = try reader.header(at: offset, salt: salt, end: end)
      header = found
      guard offset + found.totalLength <= end else {
        throw LogReadError.format(FormatError("frame is longer than the file"))
      }
      let front = try reader.front(of: found, at: offset, codecs)
      chain = XXH64.hash(found.encoded(salt: salt, offset: offset).rawSpan, seed: chain)
      offset += found.totalLength
      return .frame(front)
    } catch { return .invalid(reason: try error.reason(), header: header) }
  }

  /// The next frame, or the damage before it, of a file in whatever state; nil at the end.
  ///
  /// Where no valid frame stands it searches forward for the next one. A frame's header holds
  /// the segment's salt and its own offset under a checksum, so nothing that a value holds can
  /// pass for a frame.
  package mutating func nextPiece() throws(FileSystemError) -> Piece? {
    guard !isAtEnd else { return nil }
    let start = offset
    switch try next() {
    case .frame(let front): return .frame(front)
    case .invalid(let reason, let header):
      // A header with a right checksum tells how long its frame is, whatever follows in it.
      if let header, start + header.totalLength <= end {
        offset = start + header.totalLength
        return .damage(Damage(range: start..<offset, header: header, reason: reason))
      }
      // From sequence 1 on: any frame counts.
      offset = try search(from: start + FormatConstants.frameAlignment, sequence: 1)?.offset ?? end
      return .damage(Damage(range: start..<offset, header: nil, reason: reason))
    }
  }

  /// Checks every value block and the padding of a frame.
  /// - Returns: what is wrong, with the offset; nil when nothing is.
  package func checkBody(_ front: DecodedFront) throws(FileSystemError) -> (Int, FormatError)? {
    var position = front.offset + FormatConstants.frameHeaderBytes + front.header.frontLength
    do throws(LogReadError) {
      for block in front.blocks {
        try reader.withBytes(at: position, count: block.storedLength) {
          (bytes) throws(FormatError) in
          _ = try block.checked(bytes, salt: salt, at: position)
        }
        position += block.storedLength
      }
      let padding = front.offset + front.header.totalLength - position
      let isZero = try reader.withBytes(at: position, count: padding) {
        (bytes) throws(FormatError) in bytes.isZero
      }
      return isZero ? nil : (position, FormatError("bytes in a frame's padding"))
    } catch { return (position, try error.reason()) }
  }

  /// Searches forward in steps of eight bytes for a frame whose header is valid.
  /// - Parameters:
  ///   - start: where to begin; a multiple of 8.
  ///   - sequence: the frame must not begin below this sequence.
  /// - Returns: the frame's offset and header; nil when there is none up to the end.
  package func search(
    from start: Int, sequence: UInt64
  ) throws(FileSystemError) -> (offset: Int, header: FrameHeader)? {
    let step = 128 << 10
    var base = start
    let salt = salt
    while base < end {
      do throws(LogReadError) {
        // Headers may straddle two windows, so windows overlap by one header.
        let windowStart = base
        let found: (Int, FrameHeader)? = try reader.withBytes(
          at: base, count: min(step + FormatConstants.frameHeaderBytes, end - base)
        ) { (bytes) throws(FormatError) in
          var position = 0
          while position < step, position <= bytes.byteCount - FormatConstants.frameHeaderBytes {
            // A cheap check before decoding.
            if try bytes.u32(at: position) == FormatConstants.frameSync ^ salt,
              let header = try? FrameHeader(
                decoding: try bytes.slice(position, FormatConstants.frameHeaderBytes),
                salt: salt, offset: windowStart + position),
              header.firstSequence >= sequence
            {
              return (windowStart + position, header)
            }
            position += FormatConstants.frameAlignment
          }
          return nil
        }
        if let found { return found }
      } catch {
        // `.format` does not occur: all reads above stay within `bytes`.
        guard case .system(let error) = error else { return nil }
        throw error
      }
      base += step
    }
    return nil
  }

  /// Whether everything from `start` on is zero.
  package func isZero(from start: Int) throws(FileSystemError) -> Bool {
    let step = 128 << 10
    for position in stride(from: start, to: end, by: step) {
      do throws(LogReadError) {
        let isZero = try reader.withBytes(at: position, count: min(step, end - position)) {
          (bytes) throws(FormatError) in bytes.isZero
        }
        if !isZero { return false }
      } catch {
        guard case .system(let error) = error else { return false }
        throw error
      }
    }
    return true
  }
}
