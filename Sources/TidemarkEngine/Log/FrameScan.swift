/// Goes over a segment's frames in whatever state they are, from the first to the end.
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
    /// The header, where it is intact and only what follows it is not.
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
      if let header = try header(at: start), start + header.totalLength <= walker.end {
        walker.jump(to: start + header.totalLength)
        return .damage(
          Damage(range: start..<walker.offset, header: header, reason: reason))
      }
      let found = try walker.search(
        from: start + FormatConstants.frameAlignment, sequence: 1)
      walker.jump(to: found?.offset ?? walker.end)
      return .damage(Damage(range: start..<walker.offset, header: nil, reason: reason))
    }
  }

  private func header(at offset: Int) throws(FileSystemError) -> FrameHeader? {
    do throws(LogReadError) {
      return try reader.withBytes(at: offset, count: FormatConstants.frameHeaderBytes) {
        (bytes) throws(FormatError) in
        try FrameHeader(decoding: bytes, salt: salt, offset: offset)
      }
    } catch {
      guard case .system(let error) = error else { return nil }
      throw error
    }
  }

  /// Calls `body` with every value block of a frame that is damaged.
  /// - Parameters:
  ///   - front: a frame of this segment.
  ///   - decodes: whether to decrypt and decompress intact blocks, too.
  ///   - body: gets the block's number, its offset and what is wrong.
  /// - Returns: whether the padding behind the frame is zero.
  package func checkBlocks(
    of front: DecodedFront, codecs: FrameCodecs,
    _ body: (Int, Int, FormatError) -> Void
  ) throws(FileSystemError) -> Bool {
    var position = front.offset + FormatConstants.frameHeaderBytes + front.header.frontLength
    for (number, block) in front.blocks.enumerated() {
      do throws(LogReadError) {
        try reader.withBytes(at: position, count: block.storedLength) {
          (bytes) throws(FormatError) in
          let bytes = try block.checked(bytes, salt: salt, at: position)
          if !codecs.isOpaque, block.codec != .raw || codecs.tagBytes > 0 {
            _ = try codecs.decode(bytes, block: block, at: position)
          }
        }
      } catch {
        switch error {
        case .system(let error): throw error
        case .format(let reason): body(number, position, reason)
        }
      }
      position += block.storedLength
    }
    let end = min(front.offset + front.header.totalLength, reader.length)
    do throws(LogReadError) {
      return try reader.withBytes(at: position, count: end - position) {
        (bytes) throws(FormatError) in bytes.isZero
      }
    } catch {
      guard case .system(let error) = error else { return false }
      throw error
    }
  }
}

extension DecodedFront {
  /// The least and the greatest sequence of entries whose value lies in a block.
  /// - Parameters:
  ///   - block: number of the block in the frame.
  ///   - places: where values stand.
  package func sequences(
    inBlock block: Int, places: [ValuePlace]
  ) -> ClosedRange<UInt64>? {
    var range: ClosedRange<UInt64>?
    for (entry, place) in zip(entries, places)
    where isInBlock(entry, place, block) {
      let sequence = entry.sequence
      range =
        range.map { min($0.lowerBound, sequence)...max($0.upperBound, sequence) }
        ?? sequence...sequence
    }
    return range
  }

  /// Whether some of an entry's value lies in a block.
  package func isInBlock(_ entry: EntryHead, _ place: ValuePlace, _ block: Int) -> Bool {
    guard entry.valueLength > 0, place.block <= block else { return false }
    var left = entry.valueLength - (blocks[Int(place.block)].rawLength - Int(place.position))
    var last = Int(place.block)
    while left > 0, last + 1 < blocks.count {
      last += 1
      left -= blocks[last].rawLength
    }
    return block <= last
  }

  /// The sequences of all entries; nil for a frame without any, or of which nothing is known.
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
