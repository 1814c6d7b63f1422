/// Reads the heads of a frame (the headers of its entries), checked, as the bytes may be damaged.
///
/// ```
/// varint  number of label sets; per set: varint number of labels, per label: varint length, bytes
/// u64     commit time before the first entry
/// heads   see EntryHead
/// ```
package struct HeadsDecoder: ~Escapable {
  package let bytes: RawSpan
  private var reader: ByteReader
  /// Where each label set begins.
  package private(set) var labelSetOffsets: [Int] = []
  private let hasExplicitSequences: Bool
  private var nextSequence: UInt64
  private var commitTime: UInt64
  private var valueOffset = 0
  /// The sum of the lengths of the values so far.
  package var valueBytes: Int { valueOffset }
  /// Heads still to be read.
  private var remainingHeads: Int

  /// - Parameters:
  ///   - bytes: the raw heads.
  ///   - header: the frame's header.
  @_lifetime(copy bytes)
  package init(_ bytes: RawSpan, header: FrameHeader) throws(FormatError) {
    self.bytes = bytes
    hasExplicitSequences = header.hasExplicitSequences
    nextSequence = header.firstSequence
    remainingHeads = header.entryCount
    var reader = ByteReader(bytes)
    let sets = try reader.varint(atMost: header.entryCount)
    labelSetOffsets.reserveCapacity(sets)
    for _ in 0..<sets {
      labelSetOffsets.append(reader.offset)
      let count = try reader.varint(atMost: Limits.labelsPerEntry)
      guard count > 0 else { throw FormatError("empty label set") }
      for _ in 0..<count {
        let length = try reader.varint(atMost: Limits.labelBytes)
        guard length > 0 else { throw FormatError("empty label") }
        _ = try reader.skip(length)
      }
    }
    commitTime = try reader.u64()
    self.reader = reader
  }

  /// The labels of a set of this frame, in byte order.
  package func labels(ofSet set: Int) throws(FormatError) -> [[UInt8]] {
    guard set >= 0 else { return [] }
    guard set < labelSetOffsets.count else { throw FormatError("label set out of bounds") }
    var reader = ByteReader(bytes, at: labelSetOffsets[set])
    let count = try reader.varint(atMost: Limits.labelsPerEntry)
    var labels: [[UInt8]] = []
    labels.reserveCapacity(count)
    for _ in 0..<count {
      let label = try reader.blob(atMost: Limits.labelBytes)
      if let last = labels.last, !last.lexicographicallyPrecedes(label) {
        throw FormatError("labels out of order")
      }
      labels.append(label)
    }
    return labels
  }

  /// The next head; nil after the last one, when nothing may be left over.
  package mutating func next() throws(FormatError) -> EntryHead? {
    guard remainingHeads > 0 else {
      guard reader.remaining == 0 else { throw FormatError("bytes behind the last entry") }
      return nil
    }
    remainingHeads -= 1
    let (endsBatch, kind, fields) = try kindAndFields()
    if hasExplicitSequences {
      nextSequence = nextSequence &+ UInt64(bitPattern: try reader.zigzag())
    }
    let sequence = nextSequence
    guard sequence > 0, sequence < 1 << 48 else { throw FormatError("sequence out of bounds") }
    if !hasExplicitSequences { nextSequence += 1 }
    let keyLength = try reader.varint(atMost: Limits.keyBytes)
    guard keyLength > 0 || kind == .record else { throw FormatError("empty key") }
    let keyStart = try reader.skip(keyLength)
    var head = EntryHead(
      kind: kind, endsBatch: endsBatch, sequence: sequence, keyStart: keyStart,
      keyLength: keyLength, labelSet: -1, hasValue: false, valueOffset: valueOffset,
      valueLength: 0, previous: 0, valueSequence: 0, commitTime: 0, created: 0,
      attributesStart: 0, attributesLength: 0)
    try readFields(fields, into: &head)
    return head
  }

  /// Passes over heads; only what later heads count from is read (sequence, time, value offset).
  package mutating func skip(_ count: Int) throws(FormatError) {
    guard count <= remainingHeads else { throw FormatError("fewer entries than were said") }
    remainingHeads -= count
    for _ in 0..<count {
      let (_, _, fields) = try kindAndFields()
      let step = hasExplicitSequences ? try reader.zigzag() : 1
      nextSequence &+= UInt64(bitPattern: step)
      _ = try reader.skip(try reader.varint(atMost: Limits.keyBytes))
      if fields.contains(.labels) { _ = try reader.varint() }
      if fields.contains(.value) { valueOffset += try reader.varint(atMost: Limits.recordBytes) }
      if fields.contains(.previous) { _ = try reader.varint() }
      if fields.contains(.commitTime) {
        let step = try reader.zigzag()
        if !hasExplicitSequences { commitTime &+= UInt64(bitPattern: step) }
      }
      if fields.contains(.valueSequence) { _ = try reader.varint() }
      if fields.contains(.created) { _ = try reader.skip(8) }
      if fields.contains(.attributes) {
        _ = try reader.skip(try reader.varint(atMost: EntryAttributes.maximumBytes))
      }
    }
  }

  /// The first two bytes of a head.
  @inline(__always)
  private mutating func kindAndFields() throws(FormatError) -> (
    endsBatch: Bool, EntryKind, EntryFields
  ) {
    let first = try reader.u8()
    guard let kind = EntryKind(rawValue: first & 0x0f), first & 0xe0 == 0 else {
      throw FormatError("unknown kind of entry", isNewer: true)
    }
    let fields = try reader.u8()
    guard fields & ~EntryFields.known == 0 else {
      throw FormatError("unknown fields in an entry", isNewer: true)
    }
    return (first & 0x10 != 0, kind, EntryFields(rawValue: fields))
  }

  private mutating func readFields(
    _ fields: EntryFields, into head: inout EntryHead
  ) throws(FormatError) {
    if fields.contains(.labels) {
      head.labelSet = try reader.varint(atMost: labelSetOffsets.count - 1)
    }
    if fields.contains(.value) {
      head.hasValue = true
      head.valueLength = try reader.varint(atMost: Limits.recordBytes)
      valueOffset += head.valueLength
    }
    if fields.contains(.previous) { head.previous = try earlierThan(head.sequence) }
    if fields.contains(.commitTime) {
      head.commitTime = commitTime &+ UInt64(bitPattern: try reader.zigzag())
      // Compacted segments are not in commit order, so their times are counted from the first.
      if !hasExplicitSequences { commitTime = head.commitTime }
    } else {
      head.commitTime = commitTime
    }
    if fields.contains(.valueSequence) { head.valueSequence = try earlierThan(head.sequence) }
    if fields.contains(.created) { head.created = try reader.u64() }
    if fields.contains(.attributes) {
      head.attributesLength = try reader.varint(atMost: EntryAttributes.maximumBytes)
      head.attributesStart = try reader.skip(head.attributesLength)
    }
    guard (head.kind == .put) == head.hasValue || head.kind == .record,
      (head.kind == .touch) == (head.valueSequence != 0)
    else { throw FormatError("fields do not fit the kind of entry") }
  }

  private mutating func earlierThan(_ sequence: UInt64) throws(FormatError) -> UInt64 {
    let delta = try reader.varint()
    guard delta > 0, delta < sequence else { throw FormatError("sequence link out of bounds") }
    return sequence - delta
  }
}
