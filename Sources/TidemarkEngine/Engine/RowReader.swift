/// Reads the values of many entries one after the other.
///
/// It keeps hold of the segments that it has met and of the block that was read last in each, so
/// that neighbours in one block cost one decoding and one look-up, whatever the caches hold.
package struct RowReader {
  /// As many as a scan by key is likely to go back and forth between.
  private static let heldMost = 16

  private struct Held {
    var segment: Segment
    var range: ClosedRange<UInt64>
    /// Whether it was when it was met: then its locator is asked without a lock.
    let isSealed: Bool
    /// The block that was read last; empty when there is none.
    var bytes: [UInt8] = []
    var offset: UInt32 = 0
    /// Where it lies in the raw values of a sealed segment.
    var values: Range<UInt64> = 0..<0

    init(_ segment: Segment, _ range: ClosedRange<UInt64>) {
      self.segment = segment
      self.range = range
      isSealed = segment.isSealed
    }

    /// Where in the block a value lies; nil when it lies elsewhere.
    func range(of value: Range<UInt64>) -> Range<Int>? {
      guard !value.isEmpty, values.contains(value.lowerBound), value.upperBound <= values.upperBound
      else { return nil }
      let start = Int(value.lowerBound - values.lowerBound)
      return start..<(start + value.count)
    }
  }

  private let engine: Engine
  private var held: [Held] = []
  private var last = 0

  package init(_ engine: Engine) { self.engine = engine }

  /// Calls `body` with the value of an entry.
  /// - Parameters:
  ///   - sequence: the entry's.
  ///   - isTouch: whether it is a touch, whose value lies at an older put.
  /// - Throws: what ``Engine/read(of:isTouch:_:)`` throws.
  package mutating func read(
    _ sequence: UInt64, isTouch: Bool, _ body: (RawSpan) throws(TidemarkError) -> Void
  ) throws(TidemarkError) {
    // A block that is held would be served beyond the end of the store's being open.
    try engine.checkReadable()
    if !isTouch, let number = try number(of: sequence),
      let (bytes, range) = find(sequence, in: number)
    {
      return try body(bytes.rawSpan.extracting(range))
    }
    try engine.read(of: sequence, isTouch: isTouch) { (value, _) throws(TidemarkError) in
      try body(value)
    }
  }

  /// The held segment that covers a sequence; nil when no segment does.
  private mutating func number(of sequence: UInt64) throws(TidemarkError) -> Int? {
    if last < held.count, held[last].range.contains(sequence) { return last }
    for number in held.indices where held[number].range.contains(sequence) {
      last = number
      return number
    }
    guard case .segment(let segment) = try engine.place(of: sequence) else { return nil }
    let range = segment.range
    guard range.contains(sequence) else { return nil }
    // The segment that is appended to covers more than it did.
    if let number = held.firstIndex(where: { $0.segment === segment }) {
      held[number].range = range
      last = number
    } else if held.count < Self.heldMost {
      last = held.count
      held.append(Held(segment, range))
    } else {
      last = (last + 1) % held.count
      held[last] = Held(segment, range)
    }
    return last
  }

  /// The block that holds a value, and where in it; nil for what is better read by itself, and
  /// for what cannot be read here, since compaction may have replaced the segment.
  private mutating func find(
    _ sequence: UInt64, in number: Int
  ) -> (bytes: [UInt8], range: Range<Int>)? {
    let segment = held[number].segment
    let value = held[number].isSealed ? (try? segment.valueRange(of: sequence)) ?? nil : nil
    if let value, let range = held[number].range(of: value) { return (held[number].bytes, range) }
    guard let location = Self.location(of: sequence, value, in: segment), location.more.isEmpty
    else { return nil }
    let range = location.position..<(location.position + location.length)
    if location.length == 0 { return ([], 0..<0) }
    if held[number].offset != location.first.offset || range.upperBound > held[number].bytes.count {
      guard
        let bytes = try? segment.block(
          location.first, sequence: sequence, caches: engine.caches),
        range.upperBound <= bytes.count
      else { return nil }
      held[number].bytes = bytes
      held[number].offset = location.first.offset
      let start = value.map { $0.lowerBound - UInt64(location.position) } ?? 0
      held[number].values = start..<(value == nil ? start : start + UInt64(bytes.count))
    }
    return (held[number].bytes, range)
  }

  private static func location(
    of sequence: UInt64, _ value: Range<UInt64>?, in segment: Segment
  ) -> ValueLocation? {
    guard let value else { return try? segment.locate(sequence) }
    return try? segment.location(of: value)
  }
}
