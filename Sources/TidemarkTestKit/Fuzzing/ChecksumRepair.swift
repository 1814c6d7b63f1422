internal import TidemarkEngine

/// Makes checksums of mutated bytes right, so that a fuzzer gets to what lies behind them.
enum ChecksumRepair {
  /// Makes a frame's sync word and checksums right.
  /// - Parameters:
  ///   - bytes: what the frame stands in.
  ///   - offset: where in `bytes` it begins.
  ///   - end: where in `bytes` frames end.
  ///   - salt: the segment's.
  ///   - position: where in the file the frame stands.
  ///   - fits: whether its lengths, too, are brought into what is there.
  /// - Returns: how long the frame says that it is; nil when there is no room for a header.
  @discardableResult
  static func frame(
    _ bytes: inout [UInt8], at offset: Int, end: Int, salt: UInt32, position: Int,
    fits: Bool
  ) -> Int? {
    let size = FormatConstants.frameHeaderBytes
    let end = min(end, bytes.count)
    guard offset >= 0, end - offset >= size else { return nil }
    bytes.set(FormatConstants.frameSync ^ salt, at: offset)
    if fits { fitFrame(&bytes, at: offset, room: end - offset - size) }
    let front = Int(bytes.word32(offset + 52))
    let blocks = Int(bytes.word32(offset + 36))
    if front <= end - offset - size, blocks <= front / FormatConstants.leastBlockEntryBytes {
      let place = Place(table: offset + size, values: offset + size + front, end: end)
      self.blocks(&bytes, place, count: blocks, salt: salt, shift: position - offset)
      let start = offset + size
      bytes.set(XXH64.hash(bytes.rawSpan.extracting(start..<(start + front))), at: offset + 40)
    }
    let body = CRC32C.checksum(bytes.rawSpan.extracting((offset + 8)..<(offset + size)))
    var tail = ByteWriter()
    tail.u32(salt)
    tail.u64(UInt64(position))
    bytes.set(CRC32C.checksum(tail.bytes.rawSpan, seed: body), at: offset + 4)
    return (size + Int(bytes.word32(offset + 8)) + 7) & ~7
  }

  /// Where in the bytes a frame's block table and its values stand.
  private struct Place {
    var table: Int
    var values: Int
    var end: Int
  }

  /// Makes the checksums behind the blocks right.
  /// - Parameter shift: how much further behind they stand in the file.
  private static func blocks(
    _ bytes: inout [UInt8], _ place: Place, count: Int, salt: UInt32, shift: Int
  ) {
    var lengths: [Int] = []
    var reader = ByteReader(bytes.rawSpan, at: place.table)
    for _ in 0..<count {
      guard let block = try? BlockEntry(&reader, tagBytes: 0) else { break }
      lengths.append(block.storedLength)
    }
    var value = place.values
    for stored in lengths {
      guard stored <= place.end - value else { break }
      let end = value + stored - FormatConstants.blockChecksumBytes
      let sum = BlockEntry.checksum(
        bytes.rawSpan.extracting(value..<end), salt: salt, at: value + shift)
      bytes.set(sum, at: end)
      value += stored
    }
  }

  /// Brings a frame's lengths into the bytes that there are.
  private static func fitFrame(_ bytes: inout [UInt8], at offset: Int, room: Int) {
    let stored = min(Int(bytes.word32(offset + 8)), room)
    let front = min(Int(bytes.word32(offset + 52)), stored)
    let blocks = min(
      Int(bytes.word32(offset + 36)), front / FormatConstants.leastBlockEntryBytes)
    bytes.set(UInt32(stored), at: offset + 8)
    bytes.set(UInt32(front), at: offset + 52)
    bytes.set(UInt32(blocks), at: offset + 36)
    // Raw heads are as long as they are.
    if bytes[offset + 48] == Codec.raw.rawValue {
      var reader = ByteReader(bytes.rawSpan, at: offset + FormatConstants.frameHeaderBytes)
      for _ in 0..<blocks { _ = try? BlockEntry(&reader, tagBytes: 0) }
      let table = reader.offset - offset - FormatConstants.frameHeaderBytes
      bytes.set(UInt32(max(0, front - table)), at: offset + 12)
    }
  }

  /// Makes all frames right whose sync word stands where the frame before ends, or anywhere
  /// behind it.
  static func frames(
    _ bytes: inout [UInt8], from start: Int, end: Int, salt: UInt32
  ) {
    var offset = start
    while offset >= 0, offset <= end - FormatConstants.frameHeaderBytes {
      let isFrame = bytes.word32(offset) == FormatConstants.frameSync ^ salt
      let length =
        isFrame
        ? frame(&bytes, at: offset, end: end, salt: salt, position: offset, fits: false) : nil
      offset += max(FormatConstants.frameAlignment, min(length ?? 0, end))
    }
  }

  /// Makes a segment right: header pages, dictionary, frames, and, where it is sealed, locator
  /// and footer.
  static func segment(_ bytes: inout [UInt8], salt: UInt32, isSealed: Bool) {
    let page = FormatConstants.segmentHeaderPageBytes
    guard bytes.count >= 2 * page else { return }
    bytes.set(salt, at: 56)
    dictionary(&bytes)
    for copy in [0, page] {
      if copy > 0 { bytes.replaceSubrange(page..<(2 * page), with: bytes[0..<page]) }
      bytes.set(FormatConstants.segmentMagic, at: copy)
      let sum = CRC32C.checksum(bytes.rawSpan.extracting(copy..<(copy + page - 4)))
      bytes.set(sum, at: copy + page - 4)
    }
    var end = bytes.count
    if isSealed, let locator = locator(&bytes, salt: salt, locatorAt: nil) { end = locator }
    let first = Int(bytes.word32(60)) & ~(FormatConstants.frameAlignment - 1)
    frames(&bytes, from: max(first, 2 * page), end: end, salt: salt)
  }

  private static func dictionary(_ bytes: inout [UInt8]) {
    let offset = Int(bytes.word32(68))
    let length = Int(bytes.word32(72))
    guard length > 0, offset <= bytes.count, length <= bytes.count - offset else { return }
    let sum = XXH64.hash(bytes.rawSpan.extracting(offset..<(offset + length)))
    bytes.set(sum, at: 80)
  }

  /// Makes the footer at the end and the locator before it right.
  /// - Parameter locatorAt: where the locator begins; nil leaves that as the footer says.
  /// - Returns: where the locator begins; nil when it cannot be told.
  static func locator(_ bytes: inout [UInt8], salt: UInt32, locatorAt: Int?) -> Int? {
    let size = FormatConstants.segmentFooterBytes
    let footer = bytes.count - size
    guard footer >= FormatConstants.segmentHeaderBytes else { return nil }
    bytes.set(FormatConstants.footerMagic, at: footer)
    if let locatorAt { bytes.set(UInt64(locatorAt), at: footer + 32) }
    let start = Int(min(bytes.word64(footer + 32), UInt64(footer)))
    let segmentID = bytes.word64(footer + 8)
    var offset = start
    var chunk = 0
    var counts = SegmentFooter(
      segmentID: segmentID, firstSequence: 1, lastSequence: 1, locatorOffset: start, chain: 0,
      latestTime: nil, rawBytes: 0, latestCommitTime: 0)
    counts.blockCount = Int(bytes.word32(footer + 40))
    counts.slotCount = Int(bytes.word32(footer + 44))
    counts.frameCount = Int(bytes.word32(footer + 48))
    counts.sequenceCount = Int(bytes.word32(footer + 52))
    counts.blockBytes = Int(bytes.word32(footer + 96))
    counts.slotBytes = Int(bytes.word32(footer + 100))
    counts.sequenceBytes = Int(bytes.word32(footer + 104))
    counts.frameBytes = Int(bytes.word32(footer + 112))
    for section in LocatorLayout.sections(counts) {
      var left = section
      while left > 0, offset < footer {
        let count = min(left, FormatConstants.locatorChunkPayloadBytes)
        guard offset + count + 8 <= footer else { break }
        let seed = LocatorLayout.seed(segmentID: segmentID, chunk: chunk)
        let sum = XXH64.hash(bytes.rawSpan.extracting(offset..<(offset + count)), seed: seed)
        bytes.set(sum, at: offset + count)
        offset += count + 8
        left -= count
        chunk += 1
      }
    }
    let sum = XXH64.hash(
      bytes.rawSpan.extracting(footer..<(footer + size - 8)), seed: UInt64(salt))
    bytes.set(sum, at: footer + size - 8)
    return start
  }
}
