/// Reads of values and of fronts (a frame's block table and heads, which are the entries without
/// their values), through the caches where these are passed.
extension Segment {
  /// Calls `body` with a value's bytes.
  /// - Parameter sequence: for messages.
  package func readValue(
    at location: ValueLocation, sequence: UInt64, caches: LogCaches,
    _ body: (RawSpan) throws(TidemarkError) -> Void
  ) throws(TidemarkError) {
    guard location.length > 0 else {
      let none: [UInt8] = []
      return try body(none.rawSpan)
    }
    let raw =
      location.more.isEmpty
      ? try block(location.first, sequence: sequence, caches: caches)
      : try wholeBlocks(location, sequence: sequence)
    let start = location.more.isEmpty ? location.position : 0
    // `location.length` was worked out from the same block lengths that were just checked.
    try body(raw.rawSpan.extracting(start..<(start + location.length)))
  }

  /// A block's raw bytes.
  /// - Parameter isForRows: whether a walk of many rows asks. Then the caches also keep a block
  ///   that is stored raw: the system's page cache has the same bytes, but would be asked for each.
  package func block(
    _ record: BlockRecord, sequence: UInt64, caches: LogCaches, isForRows: Bool = false
  ) throws(TidemarkError) -> [UInt8] {
    guard isForRows || record.codec != .raw || keyID != nil else {
      return try decode(record, sequence: sequence)
    }
    let address = caches.address(of: record, in: self)
    // Two records of a bad locator may name one place and differ in the length.
    if let cached = caches.blocks.value(for: address), cached.count == Int(record.rawLength) {
      return cached
    }
    let raw = try decode(record, sequence: sequence)
    // A walk of many rows may want all of the block, and counts what it does not.
    if !isForRows, kind == .appended, record.codec != .raw {
      decodedBytes.raise(by: UInt64(raw.count))
    }
    caches.blocks.insert(raw, for: address, bytes: raw.count + 96)
    return raw
  }

  private func decode(_ record: BlockRecord, sequence: UInt64) throws(TidemarkError) -> [UInt8] {
    let offset = Int(record.offset)
    let file = try file()
    let stored: [UInt8]
    do { stored = try file.read(Int(record.storedLength), at: offset) } catch {
      throw damage(.system(error), offset: offset, sequences: sequence...sequence)
    }
    let codecs = try codecs()
    do {
      return try codecs.decodeChecked(stored.rawSpan, block: record.entry, salt: salt, at: offset)
    } catch { throw damage(.format(error), offset: offset, sequences: sequence...sequence) }
  }

  /// The value of more than one block, which fills its blocks. It would fill caches, too.
  private func wholeBlocks(
    _ location: ValueLocation, sequence: UInt64
  ) throws(TidemarkError) -> [UInt8] {
    var bytes: [UInt8] = []
    bytes.reserveCapacity(location.length)
    for record in [location.first] + location.more {
      bytes.append(contentsOf: try decode(record, sequence: sequence))
    }
    guard location.position == 0, bytes.count == location.length else {
      throw damage(
        .format(FormatError("a value does not fill its blocks")),
        offset: Int(location.first.offset), sequences: sequence...sequence)
    }
    return bytes
  }

  /// A frame's front.
  package func front(
    _ record: FrameRecord, caches: LogCaches
  ) throws(TidemarkError) -> DecodedFront {
    let address = caches.address(ofOffset: record.offset, in: self)
    if let cached = caches.fronts.value(for: address) { return cached }
    let front = try readFront(record)
    caches.fronts.insert(front, for: address, bytes: front.memoryBytes)
    return front
  }

  /// Decodes the heads of some of a frame's entries, and keeps them in no cache.
  /// - Parameter entries: which of the frame's entries, in ascending order.
  /// - Returns: nil where all heads are cached, or are better decoded together by `front`.
  func heads(
    of entries: [Int], in record: FrameRecord, caches: LogCaches
  ) throws(TidemarkError) -> DecodedFront? {
    // To pass over the other heads costs a fraction of decoding them.
    guard entries.count <= Int(record.entryCount) / 2,
      caches.fronts.value(for: caches.address(ofOffset: record.offset, in: self)) == nil
    else { return nil }
    return try readFront(record, only: entries)
  }

  /// - Parameter only: which of the entries are wanted, if not all, in ascending order.
  private func readFront(
    _ record: FrameRecord, only: [Int]? = nil
  ) throws(TidemarkError) -> DecodedFront {
    let offset = Int(record.offset)
    do {
      let file = try file()
      let size = FormatConstants.frameHeaderBytes
      // Most fronts are short: header and front come in one read.
      let likely = min(4096, 256 + 64 * Int(record.entryCount))
      var bytes = try file.read(size + likely, at: offset)
      let header = try FrameHeader(decoding: bytes.rawSpan, salt: salt, offset: offset)
      if bytes.count < size + header.frontLength {
        bytes = try file.read(size + header.frontLength, at: offset)
      }
      let front = try DecodedFront(
        try bytes.rawSpan.slice(size, min(header.frontLength, bytes.count - size)),
        header: header, offset: offset, codecs: try codecs(), only: only)
      try check(front, record)
      return front
    } catch let error as FormatError {
      throw damage(.format(error), offset: offset)
    } catch { throw TidemarkError(wrapping: error, while: "reading the log") }
  }

  /// Compares a frame with what the locator says of it. Without the key it has no entries at all.
  func check(_ front: DecodedFront, _ record: FrameRecord) throws(FormatError) {
    guard front.header.hasExplicitSequences == (kind == .compacted) else {
      throw FormatError("a frame of another kind of segment")
    }
    guard front.header.entryCount == Int(record.entryCount), !front.isOpaque,
      front.header.isHistory == record.isHistory
    else { throw FormatError("frame and locator differ") }
  }

  /// The head of a sequence, with a front that has it.
  /// - Returns: nil when the segment does not hold the sequence.
  package func head(of sequence: UInt64, caches: LogCaches) throws(TidemarkError) -> LogEntry? {
    guard let (record, entry) = try frame(holding: sequence) else { return nil }
    let address = caches.address(ofOffset: record.offset, in: self)
    let isAlone = caches.fronts.value(for: address) == nil && caches.isFirstQuestion(about: address)
    let front = isAlone ? try readFront(record, only: [entry]) : try front(record, caches: caches)
    let index = isAlone ? 0 : entry
    guard index < front.entries.count, front.entries[index].sequence == sequence else {
      throw damage(
        .format(FormatError("locator points at another entry")), offset: Int(record.offset),
        sequences: sequence...sequence)
    }
    return LogEntry(segment: self, front: front, head: front.entries[index])
  }
}

/// One entry of the log as found on disk, without its value.
package struct LogEntry: Sendable {
  package let segment: Segment
  package let front: DecodedFront
  package let head: EntryHead

  package var sequence: UInt64 { head.sequence }
  package var labels: [[UInt8]] { front.labels(of: head) }
  package var key: [UInt8] { [UInt8](copying: front.key(of: head)) }

  package func attributes() throws(TidemarkError) -> EntryAttributes {
    do { return try front.attributes(of: head) } catch {
      throw segment.damage(
        .format(error), offset: front.offset, sequences: head.sequence...head.sequence)
    }
  }
}
