extension SegmentVerifier {
  /// Checks what stands behind the frames, the locator (a table of all entries) and the footer: by
  /// itself, against the frames, and against MANIFEST. With damaged frames or without the key of an
  /// encrypted segment (`isOpaque`) only checksums can be checked.
  mutating func checkTrailer(_ file: TolerantFile, _ survey: SegmentSurvey, _ walk: Walk) throws {
    let footerStart = row.length - FormatConstants.segmentFooterBytes
    let footer = survey.origin.footer
    var problem: String? = "segment footer does not match its checksum"
    if let footer { problem = fault(of: footer, survey, walk) }
    if let problem {
      report(footerStart, problem, length: FormatConstants.segmentFooterBytes)
    } else if !survey.hasDamage, !survey.origin.codecs.isOpaque, !walk.endsBatch,
      row.kind != .compacted
    {
      report(survey.offset, "the segment ends inside a batch")
    }
    guard survey.offset <= footerStart else {
      return report(survey.offset, "the segment is too short for its footer")
    }
    if !survey.hasDamage, !survey.origin.codecs.isOpaque {
      try compareLocator(file, survey, walk, survey.offset..<footerStart)
    } else if let footer {
      try checkChunks(file, footer, survey.origin.codecs, end: footerStart)
    }
  }

  /// - Returns: what is wrong with the footer; nil for nothing.
  private func fault(of footer: SegmentFooter, _ survey: SegmentSurvey, _ walk: Walk) -> String? {
    guard footer.firstSequence == row.firstSequence else { return "footer of another segment" }
    guard footer.lastSequence == row.lastSequence, footer.chain == row.chain,
      footer.slotCount == row.entryCount, footer.rawBytes == row.rawBytes,
      footer.latestTime == row.latestTime
    else { return "footer and MANIFEST differ" }
    guard !survey.hasDamage else { return nil }
    guard footer.locatorOffset == survey.offset, footer.chain == survey.chain,
      footer.slotCount == survey.entryCount
    else { return "footer and frames differ" }
    guard !survey.origin.codecs.isOpaque else { return nil }
    guard footer.frameCount == walk.table.frames.count,
      footer.sequenceCount == walk.table.sequences.count,
      // Times of entries that compaction dropped count on in the footer.
      footer.latestCommitTime >= walk.latestCommitTime,
      !footer.isRecordless || !walk.table.holdsRecords,
      row.kind == .compacted || survey.expected == row.lastSequence + 1
    else { return "footer and frames differ" }
    return nil
  }

  /// Encodes the locator anew from the frames, and compares it byte by byte.
  private mutating func compareLocator(
    _ file: TolerantFile, _ survey: SegmentSurvey, _ walk: Walk, _ place: Range<Int>
  ) throws {
    let codecs = survey.origin.codecs
    let counts = SegmentFooter(
      segmentID: row.id, firstSequence: row.firstSequence, lastSequence: row.lastSequence,
      locatorOffset: place.lowerBound, chain: row.chain, latestTime: row.latestTime,
      rawBytes: row.rawBytes, latestCommitTime: 0)
    let (expected, known) = try walk.table.encoded(counts, sealer: codecs.sealer)
    if let footer = survey.origin.footer,
      LocatorLayout.sections(footer) != LocatorLayout.sections(known)
    {
      report(
        place.upperBound, "footer and frames differ",
        length: FormatConstants.segmentFooterBytes)
    }
    guard expected.count == place.count else {
      return report(
        place.lowerBound, "locator does not fill the space before the footer",
        length: place.count)
    }
    let step = FormatConstants.locatorChunkBytes + codecs.tagBytes
    for start in stride(from: 0, to: expected.count, by: step) {
      let count = min(step, expected.count - start)
      let stored = try file.read(count, at: place.lowerBound + start)
      guard !stored.elementsEqual(expected[start..<(start + count)]) else { continue }
      report(place.lowerBound + start, "locator does not match the frames", length: count)
    }
  }

  /// Checks the locator's chunks by their checksums alone, 8 bytes behind each.
  private mutating func checkChunks(
    _ file: TolerantFile, _ footer: SegmentFooter, _ codecs: FrameCodecs, end: Int
  ) throws(FileSystemError) {
    var offset = footer.locatorOffset
    var chunk = 0
    for section in LocatorLayout.sections(footer) {
      let full = FormatConstants.locatorChunkPayloadBytes
      for start in stride(from: 0, to: section, by: full) where offset < end {
        let count = min(full, section - start) + codecs.tagBytes
        let bytes = try file.read(count + 8, at: offset)
        let seed = LocatorLayout.seed(segmentID: row.id, chunk: chunk)
        if bytes.count < count + 8
          || XXH64.hash(bytes.rawSpan.extracting(0..<count), seed: seed)
            != (try? bytes.rawSpan.u64(at: count))
        {
          report(offset, "locator does not match its checksum", length: count + 8)
        }
        offset += count + 8
        chunk += 1
      }
    }
    if offset != end {
      report(offset, "locator does not fill the space before the footer", length: 0)
    }
  }
}
