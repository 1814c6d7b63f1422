/// A frame of one entry, neither compressed nor encrypted, put together in memory that is used
/// again: what a put of its own writes.
///
/// The bytes are those that ``FrameBuilder`` makes of the same entry. It knows no labels and no
/// attributes, and the value fits into one block.
package struct SingleFrame {
  /// The longest key and value together that it takes.
  package static let keyAndValueBytesMost = Limits.compressFromBytes - 1024

  /// Longer than the frame, as a rule: the memory is kept.
  private var memory: [UInt8] = []
  private var frontEnd = 0
  private var valueLength = 0
  private(set) var length = 0
  /// The frame's header; the whole of it once the frame is finished.
  private(set) var header = FrameHeader(
    storedLength: 0, headsRawLength: 0, firstSequence: 0, durableThrough: 0, entryCount: 0,
    blockCount: 0, headsChecksum: 0, headsCodec: .raw, hasExplicitSequences: false,
    usesDictionary: false, frontLength: 0)
  /// The value's block; nil when there is none.
  private(set) var block: BlockEntry?

  package init() {}

  /// The frame's bytes, once it is finished.
  package var bytes: RawSpan {
    @_lifetime(borrow self) get { memory.rawSpan.extracting(0..<length) }
  }

  /// The value, for readers who come before it is in the log. As long as it is kept, filling the
  /// frame again takes other memory.
  var value: ArraySlice<UInt8> { memory[frontEnd..<(frontEnd + valueLength)] }

  /// Whether a frame of this kind may hold an entry.
  package static func fits(keyBytes: Int, valueBytes: Int) -> Bool {
    valueBytes <= Limits.blockBytes && keyBytes + valueBytes <= keyAndValueBytesMost
  }

  /// Puts heads and value in place, and all that can be said before the frame's place is known.
  /// - Parameters:
  ///   - kind: a put or a delete.
  ///   - sequence: the entry's.
  ///   - previous: the key's sequence before; 0 for none.
  ///   - commitTime: the entry's.
  ///   - key: the key.
  ///   - value: nil for none.
  package mutating func fill(
    _ kind: EntryKind, sequence: UInt64, previous: UInt64, commitTime: UInt64, key: RawSpan,
    value: RawSpan?
  ) {
    valueLength = value?.byteCount ?? 0
    let most = FormatConstants.frameHeaderBytes + 64 + key.byteCount + valueLength
    if memory.count < most {
      memory = [UInt8](repeating: 0, count: max(1024, 2 * most))
    }
    var fields: EntryFields = []
    if value != nil { fields.insert(.value) }
    if previous != 0 { fields.insert(.previous) }
    block = valueLength > 0 ? BlockEntry(rawLength: valueLength) : nil
    let (block, valueBytes, hasValue) = (block, valueLength, value != nil)
    let (start, end) = memory.withMutableRawSpan { memory in
      let table = FormatConstants.frameHeaderBytes
      let start = block?.encode(into: &memory, at: table) ?? table
      // No set of labels.
      memory.put(UInt8(0), at: start)
      memory.put(commitTime, at: start + 1)
      memory.put(kind.rawValue | 0x10, at: start + 9)
      memory.put(fields.rawValue, at: start + 10)
      var end = memory.put(varint: UInt64(key.byteCount), at: start + 11)
      memory.store(copying: key, at: end)
      end += key.byteCount
      if hasValue { end = memory.put(varint: UInt64(valueBytes), at: end) }
      if previous != 0 { end = memory.put(varint: sequence - previous, at: end) }
      return (start, end)
    }
    frontEnd = end
    if let value { memory.withMutableRawSpan { $0.store(copying: value, at: end) } }
    header = FrameHeader(
      storedLength: frontEnd - FormatConstants.frameHeaderBytes + (block?.storedLength ?? 0),
      headsRawLength: frontEnd - start, firstSequence: sequence, durableThrough: 0,
      entryCount: 1, blockCount: block == nil ? 0 : 1, headsChecksum: 0, headsCodec: .raw,
      hasExplicitSequences: false, usesDictionary: false,
      frontLength: frontEnd - FormatConstants.frameHeaderBytes)
    length = header.totalLength
  }

  /// Adds the checksums and the header.
  /// - Parameters:
  ///   - offset: where in the file the frame will stand.
  ///   - salt: the segment's salt.
  ///   - durableThrough: the highest sequence known to be synced.
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
    let length = length
    memory.withMutableRawSpan { memory in
      for offset in end..<length { memory.put(UInt8(0), at: offset) }
    }
  }

  /// Writes the frame to where it was finished for.
  func write(to file: any File, at offset: Int) throws(FileSystemError) {
    try file.writeFully(memory.rawSpan.extracting(0..<length), at: offset)
  }

  /// The chained checksum of the segment's headers, with this one.
  func chain(from chain: UInt64) -> UInt64 {
    XXH64.hash(memory.rawSpan.extracting(0..<FormatConstants.frameHeaderBytes), seed: chain)
  }
}
