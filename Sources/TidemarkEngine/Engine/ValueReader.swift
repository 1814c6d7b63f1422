/// Reads the values of entries that stand near each other in the log, keeping hold of the frame
/// and of the block that were read last: so most are found without a lock or a look at a locator.
package struct ValueReader {
  private let engine: Engine
  private var segment: Segment?
  private var front: DecodedFront?
  /// The frame's entries, if their sequences follow each other from the first one on.
  private var heads: [EntryHead] = []
  private var firstSequence: UInt64 = 0
  /// The number of the block in its frame that was looked at last.
  private var number = 0
  /// Where it lies in the frame's stream of values.
  private var range = 0..<0
  /// Where it stands in the segment.
  private var offset = 0
  /// Its raw bytes; empty when they were not read.
  private var bytes: [UInt8] = []

  package init(_ engine: Engine) { self.engine = engine }

  /// Looks at the frame of an entry from here on.
  package mutating func enter(_ entry: LogEntry) {
    guard front !== entry.front else { return }
    segment = entry.segment
    front = entry.front
    heads = entry.front.header.hasExplicitSequences ? [] : entry.front.entries
    firstSequence = entry.front.header.firstSequence
    rewind(entry.front)
  }

  /// The value of a put.
  /// - Throws: what ``Engine/withValue(of:isTouch:_:)`` throws.
  package mutating func value(of sequence: UInt64) throws(TidemarkError) -> [UInt8] {
    if let value = nearValue(of: sequence) { return value }
    return try engine.withValue(of: sequence) { (value, _) throws(TidemarkError) in
      [UInt8](copying: value)
    }
  }

  /// A value of the frame that lies within one block; nil for any other, and when the segment
  /// cannot be read, since compaction may have replaced it.
  private mutating func nearValue(of sequence: UInt64) -> [UInt8]? {
    guard sequence >= firstSequence, sequence - firstSequence < UInt64(heads.count) else {
      return nil
    }
    let head = heads[Int(sequence - firstSequence)]
    guard head.sequence == sequence else { return nil }
    guard head.valueLength > 0 else { return [] }
    let place = head.valueOffset..<(head.valueOffset + head.valueLength)
    if bytes.isEmpty || !range.contains(place.lowerBound) {
      guard load(place, sequence) else { return nil }
    }
    guard place.upperBound <= range.upperBound else { return nil }
    let first = place.lowerBound - range.lowerBound
    return [UInt8](copying: bytes.rawSpan.extracting(first..<(first + head.valueLength)))
  }

  /// Reads the block in which a value lies.
  private mutating func load(_ place: Range<Int>, _ sequence: UInt64) -> Bool {
    guard let segment, let front else { return false }
    bytes = []
    if place.lowerBound < range.lowerBound { rewind(front) }
    while number < front.blocks.count {
      let block = front.blocks[number]
      range = range.lowerBound..<(range.lowerBound + block.rawLength)
      if range.contains(place.lowerBound) {
        guard place.upperBound <= range.upperBound, offset <= UInt32.max else { return false }
        let record = BlockRecord(offset: offset, entry: block)
        guard let raw = try? segment.block(record, sequence: sequence, caches: engine.caches),
          raw.count == range.count
        else { return false }
        bytes = raw
        return true
      }
      range = range.upperBound..<range.upperBound
      offset += block.storedLength
      number += 1
    }
    return false
  }

  private mutating func rewind(_ front: DecodedFront) {
    number = 0
    range = 0..<0
    offset = front.offset + FormatConstants.frameHeaderBytes + front.header.frontLength
    bytes = []
  }
}
