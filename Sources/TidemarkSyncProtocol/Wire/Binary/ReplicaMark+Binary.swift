package import TidemarkEngine

/// A mark by itself, as it is in an answer: for feeds that keep it.
extension ReplicaMark {
  package var encoded: [UInt8] {
    var writer = WireWriter(budget: 0, capacity: 64)
    writer.write(self)
    return writer.out.bytes
  }

  package init(decoding bytes: RawSpan) throws(FormatError) {
    var reader = WireReader(bytes, isRequest: false, budget: 0)
    self = try reader.mark()
    guard reader.bytes.remaining == 0 else { throw FormatError("bytes behind a mark") }
  }
}
