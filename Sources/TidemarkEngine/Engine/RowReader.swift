/// Reads the values of many entries one after the other.
///
/// It keeps hold of the segments that it has met and of the block that was read last in each, so
/// that neighbours in one block cost one decoding and one look-up, whatever the caches hold.
package struct RowReader {
  /// As many as a scan by key is likely to go back and forth between.
  private static let heldMost = 16

  private struct Held {
    let segment: Segment
    var range: ClosedRange<UInt64>
    /// The locator of a segment that was sealed when it was met: asked without a lock.
    let locator: SealedLocator?
    /// The block that was read last; empty when there is none.
    var bytes: [UInt8] = []
    /// Where it stands in a segment that is appended to.
    var offset: UInt32 = 0
    /// Its row in the locator of a sealed segment, and where it lies in the raw values.
    var row = -1
    var values: Range<UInt64> = 0..<0
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
      let range = find(sequence, in: number)
    {
      let bytes = held[number].bytes
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
      held.append(try Self.held(segment, range))
    } else {
      last = (last + 1) % held.count
      held[last] = try Self.held(segment, range)
    }
    return last
  }

  private static func held(
    _ segment: Segment, _ range: ClosedRange<UInt64>
  ) throws(TidemarkError) -> Held {
    Held(
      segment: segment, range: range,
      locator: segment.isSealed ? try segment.sealedLocator() : nil)
  }

  /// Sees to it that the block that holds a value is held.
  /// - Returns: where in it the value lies; nil for what is better read by itself, and for what
  ///   cannot be read here, since compaction may have replaced the segment.
  private mutating func find(_ sequence: UInt64, in number: Int) -> Range<Int>? {
    guard let locator = held[number].locator else { return findAppended(sequence, in: number) }
    guard let slot = (try? locator.slot(of: sequence)) ?? nil,
      let value = try? locator.valueRange(ofSlot: slot)
    else { return nil }
    if value.isEmpty { return 0..<0 }
    let values = held[number].values
    if !values.contains(value.lowerBound) {
      guard
        let block = try? locator.block(holding: value.lowerBound, near: held[number].row + 1),
        value.upperBound <= block.range.upperBound,
        let bytes = try? held[number].segment.block(
          block.record, sequence: sequence, caches: engine.caches, keepsRaw: true)
      else { return nil }
      held[number].bytes = bytes
      held[number].row = block.row
      held[number].values = block.range
    }
    let held = held[number].values
    guard value.upperBound <= held.upperBound else { return nil }
    let start = Int(value.lowerBound - held.lowerBound)
    return start..<(start + value.count)
  }

  private mutating func findAppended(_ sequence: UInt64, in number: Int) -> Range<Int>? {
    let segment = held[number].segment
    guard let location = try? segment.locate(sequence), location.more.isEmpty else { return nil }
    if location.length == 0 { return 0..<0 }
    let range = location.position..<(location.position + location.length)
    if held[number].offset != location.first.offset || range.upperBound > held[number].bytes.count {
      guard
        let bytes = try? segment.block(
          location.first, sequence: sequence, caches: engine.caches, keepsRaw: true),
        range.upperBound <= bytes.count
      else { return nil }
      held[number].bytes = bytes
      held[number].offset = location.first.offset
    }
    return range
  }
}
