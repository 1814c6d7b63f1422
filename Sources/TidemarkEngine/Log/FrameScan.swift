/// Walks a segment's frames in whatever state the file is, for verify and repair.
///
/// Where no valid frame stands it searches forward for the next one. A frame's header holds
/// the segment's salt and its own offset under a checksum, so nothing that a value holds can
/// pass for a frame.
package struct FrameScan {
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

  private var walker: FrameWalker
  private let reader: WindowReader
  private let salt: UInt32

  /// - Parameters:
  ///   - reader: reads the segment.
  ///   - offset: where the first frame is expected.
  ///   - end: where frames end; nil is the end of the file.
  package init(
    _ reader: WindowReader, salt: UInt32, codecs: FrameCodecs, from offset: Int, end: Int? = nil
  ) {
    self.reader = reader
    self.salt = salt
    walker = FrameWalker(reader, salt: salt, codecs: codecs, from: offset, end: end)
  }

  /// Where the next piece begins.
  package var offset: Int { walker.offset }
  /// Chained checksum of the headers so far; of use only while nothing was damaged.
  package var chain: UInt64 { walker.chain }

  /// The next piece; nil at the end.
  package mutating func next() throws(FileSystemError) -> Piece? {
    guard !walker.isAtEnd else { return nil }
    let start = walker.offset
    switch try walker.next() {
    case .frame(let front): return .frame(front)
    case .invalid(let reason):
      // A header with a right checksum tells how long its frame is, whatever follows in it.
      if let header = try header(at: start), start + header.totalLength <= walker.end {
        walker.jump(to: start + header.totalLength)
        return .damage(Damage(range: start..<walker.offset, header: header, reason: reason))
      }
      // From sequence 1 on: any frame counts.
      let found = try walker.search(from: start + FormatConstants.frameAlignment, sequence: 1)
      walker.jump(to: found?.offset ?? walker.end)
      return .damage(Damage(range: start..<walker.offset, header: nil, reason: reason))
    }
  }

  /// The header at an offset; nil where no valid one stands there.
  private func header(at offset: Int) throws(FileSystemError) -> FrameHeader? {
    do throws(LogReadError) { return try reader.header(at: offset, salt: salt) } catch {
      guard case .system(let error) = error else { return nil }
      throw error
    }
  }
}

extension DecodedFront {
  /// From the least to the greatest sequence of the entries; nil for a frame without entries. Of a
  /// frame encrypted with an unknown key (`isOpaque`) only a header of dense sequences tells them.
  package var sequences: ClosedRange<UInt64>? {
    if isOpaque, !header.hasExplicitSequences, header.entryCount > 0 {
      return header.firstSequence...(header.nextSequence - 1)
    }
    guard let first = entries.first?.sequence else { return nil }
    guard header.hasExplicitSequences else { return first...(header.nextSequence - 1) }
    let all = entries.map(\.sequence)
    return (all.min() ?? first)...(all.max() ?? first)
  }
}
