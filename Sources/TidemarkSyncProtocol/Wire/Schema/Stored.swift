package import TidemarkEngine

// The coding of marks, entries and positions in records of stores: as in messages.

extension ReplicaMark {
  /// The bytes of a mark, as in an answer, but without its bounds: a feed stores planned positions.
  package var encoded: [UInt8] {
    var visitor = WireVisitor(FrameCursor(writing: 64, budget: 0))
    visitor.frame.out.varint(number)
    visitor.frame.out.u64(batchID.bits)
    var verdicts = verdicts
    // It cannot throw: texts are cut already, and a batch has no more changes than a message may.
    try? visitor.verdicts(&verdicts)
    return visitor.frame.out.bytes
  }

  /// - Parameter bytes: those of ``encoded``.
  package init(decoding bytes: RawSpan) throws(FormatError) {
    var visitor = WireVisitor(
      FrameCursor(reading: [UInt8](copying: bytes), isRequest: false, budget: 0))
    self.init()
    try visitor.frame.varint(&number)
    try visitor.frame.u64(&batchID.bits)
    try visitor.verdicts(&verdicts)
    try visitor.frame.finish()
  }
}

extension FeedEntry {
  /// The bytes of an entry, as in a page with only this one.
  package func encoded() throws(FormatError) -> [UInt8] {
    var frame = FrameCursor(writing: 128 + content.value.count, budget: Limits.keyBytes)
    var entries = [self]
    try frame.entries(&entries)
    return frame.out.bytes
  }

  /// - Parameter bytes: those of ``encoded()``.
  package init(decoding bytes: RawSpan) throws(FormatError) {
    var frame = FrameCursor(
      reading: [UInt8](copying: bytes), isRequest: false, budget: Limits.keyBytes)
    var entries: [FeedEntry] = []
    try frame.entries(&entries)
    try frame.finish()
    guard entries.count == 1 else { throw FormatError("more than one entry") }
    self = entries[0]
  }
}

extension Position {
  /// u64 epoch, varint offset.
  package func encode(into writer: inout ByteWriter) {
    writer.u64(epoch)
    writer.varint(offset)
  }

  package init(from reader: inout ByteReader) throws(FormatError) {
    let epoch = try reader.u64()
    self.init(epoch: epoch, offset: try reader.varint())
  }
}
