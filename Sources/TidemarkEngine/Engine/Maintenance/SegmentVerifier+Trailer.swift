extension SegmentVerifier {
  /// Checks locator and footer: by themselves, against the frames, and against MANIFEST.
  mutating func checkTrailer(
    _ file: TolerantFile, _ footer: SegmentFooter?, _ walk: Walk, framesEnd: Int, chain: UInt64
  ) throws {
    let footerStart = row.length - FormatConstants.segmentFooterBytes
    if let footer {
      checkFooter(footer, walk, at: footerStart, framesEnd: framesEnd, chain: chain)
    } else {
      report(
        footerStart, "segment footer does not match its checksum",
        length: FormatConstants.segmentFooterBytes)
    }
    guard framesEnd <= footerStart else {
      return report(framesEnd, "the segment is too short for its footer")
    }
    if !walk.hasDamage, !codecs.isOpaque {
      try compareLocator(file, footer, walk, framesEnd..<footerStart)
    } else if let footer {
      try checkChunks(file, footer, end: footerStart)
    }
  }

  private mutating func checkFooter(
    _ footer: SegmentFooter, _ walk: Walk, at offset: Int, framesEnd: Int, chain: UInt64
  ) {
    func note(_ message: String) {
      report(offset, message, length: FormatConstants.segmentFooterBytes)
    }
    guard footer.segmentID == row.id, footer.firstSequence == row.firstSequence else {
      return note("footer of another segment")
    }
    guard footer.lastSequence == row.lastSequence, footer.chain == row.chain,
      footer.slotCount == row.entryCount, footer.rawBytes == row.rawBytes,
      footer.latestTime == row.latestTime
    else { return note("footer and MANIFEST differ") }
    guard !walk.hasDamage else { return }
    guard footer.locatorOffset == framesEnd, footer.chain == chain,
      footer.slotCount == walk.entryCount
    else { return note("footer and frames differ") }
    guard !codecs.isOpaque else { return }
    guard footer.frameCount == walk.table.frames.count,
      footer.sequenceCount == walk.table.sequences.count,
      footer.latestCommitTime >= walk.latestCommitTime,
      !footer.isRecordless || !walk.table.holdsRecords,
      row.kind == .compacted || walk.expected == row.lastSequence + 1
    else { return note("footer and frames differ") }
    guard walk.endsBatch || row.kind == .compacted else {
      return report(framesEnd, "the segment ends inside a batch", sequences: nil)
    }
  }

  /// With all frames known, every byte of the locator is known, too.
  private mutating func compareLocator(
    _ file: TolerantFile, _ footer: SegmentFooter?, _ walk: Walk, _ place: Range<Int>
  ) throws {
    var counts = SegmentFooter(
      segmentID: row.id, firstSequence: row.firstSequence, lastSequence: row.lastSequence,
      locatorOffset: place.lowerBound, chain: row.chain, latestTime: row.latestTime,
      rawBytes: row.rawBytes, latestCommitTime: 0)
    let expected: [UInt8]
    (expected, counts) = try walk.table.encoded(counts, sealer: codecs.sealer)
    if let footer, LocatorLayout.sections(footer) != LocatorLayout.sections(counts) {
      report(
        place.upperBound, "footer and frames differ",
        length: FormatConstants.segmentFooterBytes)
    }
    guard expected.count == place.count else {
      report(
        place.lowerBound, "locator does not fill the space before the footer",
        length: place.count)
      return
    }
    var start = 0
    while start < expected.count {
      let count = min(
        FormatConstants.locatorChunkBytes + codecs.tagBytes, expected.count - start)
      let stored = try file.read(count, at: place.lowerBound + start)
      if !stored.elementsEqual(expected[start..<(start + count)]) {
        report(
          place.lowerBound + start, "locator does not match the frames", length: count)
      }
      start += count
    }
  }

  /// With frames missing, only the checksums of the locator can be checked.
  private mutating func checkChunks(
    _ file: TolerantFile, _ footer: SegmentFooter, end: Int
  ) throws {
    var offset = footer.locatorOffset
    var chunk = 0
    for section in LocatorLayout.sections(footer) {
      var left = section
      while left > 0, offset < end {
        let payload = min(left, FormatConstants.locatorChunkPayloadBytes)
        let count = payload + codecs.tagBytes
        let bytes = try file.read(count + 8, at: offset)
        let seed = LocatorLayout.seed(segmentID: row.id, chunk: chunk)
        if bytes.count < count + 8
          || XXH64.hash(bytes.rawSpan.extracting(0..<count), seed: seed)
            != (try? bytes.rawSpan.u64(at: count))
        {
          report(offset, "locator does not match its checksum", length: count + 8)
        }
        offset += count + 8
        left -= payload
        chunk += 1
      }
    }
    if offset != end {
      report(offset, "locator does not fill the space before the footer", length: 0)
    }
  }
}
