extension SequenceSet {
  /// A varint count; per range a varint of the gap before it and one of its length less one.
  package func encode(into writer: inout ByteWriter) {
    writer.varint(UInt64(ranges.count))
    var end: UInt64 = 0
    for range in ranges {
      writer.varint(range.lowerBound &- end)
      writer.varint(range.upperBound - range.lowerBound)
      end = range.upperBound
    }
  }

  package init(from reader: inout ByteReader) throws(FormatError) {
    self.init()
    let count = try reader.varint(atMost: reader.remaining / 2)
    var end: UInt64 = 0
    for _ in 0..<count {
      let (first, isLate) = end.addingReportingOverflow(try reader.varint())
      let (last, isLong) = first.addingReportingOverflow(try reader.varint())
      // Only the first range may have no gap before it: it may begin at 0.
      guard !isLate, !isLong, last < .max, isEmpty || first > end else {
        throw FormatError("runs of sequences out of order")
      }
      insert(first...last)
      end = last
    }
  }
}
