/// A frame of one entry, neither compressed nor encrypted: how a put or delete that is committed
/// alone gets into the log. The segment's appender has one and fills it again and again: `fill`,
/// `finish`, `write`, under the writer's lock.
///
/// The bytes are those that ``FrameBuilder`` makes of the same entry, which has no attributes and a
/// value that fits into one block. A frame is its header, then the front (a table of blocks, and
/// the head: all of an entry but its value), then the block with the value.
package struct SingleFrame {
  /// The longest key, labels and value together: a longer frame would be compressed.
  package static let keyAndValueBytesMost = Limits.compressFromBytes - 1024

  /// Mostly longer than the frame, whose bytes are the first `length`.
  private var memory: [UInt8] = []
  /// Where the front ends and the value begins.
  private var frontEnd = 0
  private var valueLength = 0
  private(set) var length = 0
  /// The frame's header. `fill` sets all but two fields: the front's checksum and `durableThrough`.
  private(set) var header = FrameHeader(
    storedLength: 0, headsRawLength: 0, firstSequence: 0, durableThrough: 0, entryCount: 0,
    blockCount: 0, headsChecksum: 0, hasExplicitSequences: false, usesDictionary: false,
    frontLength: 0)
  /// The value's block; nil when there is none.
  private(set) var block: BlockEntry?

  package init() {}

  /// The frame's bytes, once it is finished.
  package var bytes: RawSpan {
    @_lifetime(borrow self) get { memory.rawSpan.extracting(0..<length) }
  }

  /// The value, for readers who come before the frame is in the log. The slice shares `memory`: as
  /// long as a reader keeps it, the next `fill` copies that before it writes.
  var value: ArraySlice<UInt8> { memory[frontEnd..<(frontEnd + valueLength)] }

  /// Whether a frame of this kind may hold an entry.
  /// - Parameter keyBytes: those of the key and of its labels.
  package static func fits(keyBytes: Int, valueBytes: Int) -> Bool {
    valueBytes <= Limits.blockBytes && keyBytes + valueBytes <= keyAndValueBytesMost
  }

  /// At least as many bytes as a set of labels takes in a frame.
  static func bytes(ofLabels labels: [[UInt8]]) -> Int {
    labels.isEmpty ? 0 : labels.reduce(2) { $0 + $1.count + 2 }
  }

  /// Puts the front and the value in place: all that does not depend on where the frame will stand.
  /// - Parameters:
  ///   - kind: a put or a delete.
  ///   - previous: the key's sequence before; 0 for none.
  ///   - labels: sorted and without repetition.
  package mutating func fill(
    _ kind: EntryKind, sequence: UInt64, previous: UInt64, commitTime: UInt64, key: RawSpan,
    labels: [[UInt8]], value: RawSpan?
  ) {
    valueLength = value?.byteCount ?? 0
    // In the 96 fit the block's row and checksum, the head's numbers, and the padding.
    let most =
      FormatConstants.frameHeaderBytes + 96 + key.byteCount + Self.bytes(ofLabels: labels)
      + valueLength
    if memory.count < most { memory = [UInt8](repeating: 0, count: max(1024, 2 * most)) }
    var columns: HeadColumns = .commitTimes
    if kind != .put { columns.insert(.kinds) }
    if !labels.isEmpty { columns.insert(.labelSets) }
    if value != nil { columns.insert(.valueLengths) }
    if previous != 0 { columns.insert(.previous) }
    block = valueLength > 0 ? BlockEntry(rawLength: valueLength) : nil
    let (block, valueBytes) = (block, valueLength)
    let end = memory.withMutableRawSpan { memory in
      let table = FormatConstants.frameHeaderBytes
      let start = block?.encode(into: &memory, at: table) ?? table
      memory.put(columns.rawValue, at: start)
      // The text of the keys: its length, as the codec is raw, then the columns, then itself.
      let keyLength = UInt64(key.byteCount)
      let lengthBytes = keyLength < 0x80 ? 1 : keyLength < 0x4000 ? 2 : 3
      var end = memory.put(varint: UInt64(key.byteCount + lengthBytes) << 2, at: start + 2)
      // The text of the sets of labels: their number, then of each its labels.
      if !labels.isEmpty {
        let bytes = labels.reduce(2) { $0 + $1.count + ($1.count < 0x80 ? 1 : 2) }
        end = memory.put(varint: UInt64(bytes) << 2, at: end)
      }
      func column(_ number: UInt64) {
        memory.put(UInt8(0), at: end)
        end = memory.put(varint: number, at: end + 1)
      }
      if kind != .put { column(UInt64(kind.rawValue)) }
      if !labels.isEmpty { column(0) }
      if columns.contains(.valueLengths) { column(UInt64(valueBytes)) }
      if previous != 0 { column(sequence - previous) }
      column(commitTime)
      end = memory.put(varint: keyLength, at: end)
      memory.store(copying: key, at: end)
      end += key.byteCount
      guard !labels.isEmpty else { return end }
      end = memory.put(varint: UInt64(labels.count), at: memory.put(varint: 1, at: end))
      for label in labels {
        end = memory.put(varint: UInt64(label.count), at: end)
        memory.store(copying: label.rawSpan, at: end)
        end += label.count
      }
      return end
    }
    frontEnd = end
    if let value { memory.withMutableRawSpan { $0.store(copying: value, at: end) } }
    header = FrameHeader(
      storedLength: frontEnd - FormatConstants.frameHeaderBytes + (block?.storedLength ?? 0),
      headsRawLength: key.byteCount, firstSequence: sequence, durableThrough: 0, entryCount: 1,
      blockCount: block == nil ? 0 : 1, headsChecksum: 0, hasExplicitSequences: false,
      usesDictionary: false, frontLength: frontEnd - FormatConstants.frameHeaderBytes)
    length = header.totalLength
  }

  /// Adds the checksums, which depend on the place of the frame, and the header with them.
  /// - Parameter offset: where in the file the frame will stand.
  package mutating func finish(offset: Int, salt: UInt32, durableThrough: UInt64) {
    header.durableThrough = durableThrough
    var end = frontEnd
    if valueLength > 0 {
      let place = end + valueLength
      let checksum = BlockEntry.checksum(
        memory.rawSpan.extracting(end..<place), salt: salt, at: offset + end)
      memory.withMutableRawSpan { $0.put(checksum, at: place) }
      end = place + FormatConstants.blockChecksumBytes
    }
    header.headsChecksum = XXH64.hash(
      memory.rawSpan.extracting(FormatConstants.frameHeaderBytes..<frontEnd))
    header.encode(into: &memory, at: 0, salt: salt, offset: offset)
    // The memory still has bytes of an earlier frame: the padding must be zeros.
    let length = length
    memory.withMutableRawSpan { memory in
      for offset in end..<length { memory.put(UInt8(0), at: offset) }
    }
  }

  /// Writes the frame to the offset that `finish` was given.
  func write(to file: any File, at offset: Int) throws(FileSystemError) {
    try file.writeFully(memory.rawSpan.extracting(0..<length), at: offset)
  }

  /// The chained checksum of the segment's frame headers, from the one before this frame.
  func chain(from chain: UInt64) -> UInt64 {
    XXH64.hash(memory.rawSpan.extracting(0..<FormatConstants.frameHeaderBytes), seed: chain)
  }
}
