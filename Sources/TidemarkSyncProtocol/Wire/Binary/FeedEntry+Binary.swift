package import TidemarkEngine

extension FeedEntry {
  /// The bytes of an entry by itself, as in a page of one.
  package func encoded() throws(FormatError) -> [UInt8] {
    var writer = WireWriter(budget: Limits.keyBytes, capacity: 128 + content.value.count)
    try writer.write([self])
    return writer.out.bytes
  }

  /// - Parameter bytes: those of ``encoded()``.
  package init(decoding bytes: RawSpan) throws(FormatError) {
    var reader = WireReader(bytes, isRequest: false, budget: Limits.keyBytes)
    let entries = try reader.entries()
    guard entries.count == 1, reader.bytes.remaining == 0 else {
      throw FormatError("more than one entry")
    }
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
