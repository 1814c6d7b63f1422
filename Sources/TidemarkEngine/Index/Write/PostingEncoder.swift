/// Encodes posting lists: the ordinals (ranks in key order) of the keys of a run that carry a
/// label. ``RunLayout`` shows the bytes. Used for list after list, so that it keeps its buffers.
struct PostingEncoder {
  private var skips = ByteWriter()
  private var blocks = ByteWriter()

  /// Writes a list into the section of lists, and appends its entry for the section of labels.
  /// - Parameters:
  ///   - ordinals: ascending.
  ///   - entries: gets where the list stands, how many ordinals and how many bytes it has.
  mutating func write(
    _ ordinals: ArraySlice<UInt32>, entries: inout ByteWriter, to writer: inout SectionWriter
  ) throws(IndexError) {
    skips.bytes.removeAll(keepingCapacity: true)
    blocks.bytes.removeAll(keepingCapacity: true)
    let skipBytes = RunPostings.blocks(ordinals.count) * RunLayout.skipBytes
    var previous: UInt32 = 0
    for (i, ordinal) in ordinals.enumerated() {
      if i % RunLayout.ordinalsPerPosting == 0 {
        skips.u32(ordinal)
        skips.u32(try Self.exactly(skipBytes + blocks.count))
      } else {
        blocks.varint(UInt64(ordinal - previous))
      }
      previous = ordinal
    }
    entries.u64(UInt64(writer.sectionBytes))
    entries.u32(try Self.exactly(ordinals.count))
    entries.u32(try Self.exactly(skipBytes + blocks.count))
    try writer.append(skips.bytes.rawSpan)
    try writer.append(blocks.bytes.rawSpan)
  }

  private static func exactly(_ number: Int) throws(IndexError) -> UInt32 {
    guard let number = UInt32(exactly: number) else { throw IndexError.limitExceeded }
    return number
  }
}
