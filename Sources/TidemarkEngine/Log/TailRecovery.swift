/// Walks the segment that was open for appending and finds where the log ends: behind its last
/// whole batch. What follows is a torn tail, which nobody was told to be durable, or damage.
package struct TailRecovery {
  private let row: Manifest.Segment
  private let reader: WindowReader
  private let codecs: FrameCodecs
  /// Whether the machine has not started again since the segment was written: the process was
  /// killed, but the kernel lost nothing.
  private let sameBoot: Bool

  package init(
    row: Manifest.Segment, file: any File, codecs: FrameCodecs, sameBoot: Bool
  ) throws(FileSystemError) {
    self.row = row
    reader = try WindowReader(file)
    self.codecs = codecs
    self.sameBoot = sameBoot
  }

  /// Walks all frames and checks them whole.
  /// - Parameter batch: called with the frames of every whole batch or group of batches, in order.
  package func run<E: Error>(
    _ batch: ([DecodedFront]) throws(E) -> Void
  ) throws(E) -> Result<RecoveredTail, FileSystemError> {
    var tail = RecoveredTail(firstSequence: row.firstSequence)
    var walker = FrameWalker(
      reader, salt: row.salt, codecs: codecs, from: FormatConstants.segmentHeaderBytes)
    // The frames of a batch whose last frame has not come yet.
    var open: [DecodedFront] = []
    var failure: FormatError?
    // Every turn moves the walker forward or ends the loop.
    while !walker.isAtEnd, failure == nil {
      let step: FrameWalker.Step
      do { step = try walker.next() } catch { return .failure(error) }
      switch step {
      case .invalid(let reason, _):
        failure = reason
      case .frame(let front):
        let expected = open.last.map { $0.header.nextSequence } ?? (tail.lastSequence + 1)
        guard front.header.firstSequence == expected, !front.header.hasExplicitSequences else {
          failure = FormatError("frame does not follow the one before it")
          continue
        }
        // A write that stopped midway may have left a whole header and front, and zeros where
        // the values should be.
        do { failure = try walker.checkBody(front)?.1 } catch { return .failure(error) }
        guard failure == nil else { continue }
        open.append(front)
        guard Self.endsBatch(front, isFirst: open.count == 1) else { continue }
        do { try Self.add(open, to: &tail) } catch {
          failure = error
          continue
        }
        tail.chain = walker.chain
        tail.end = walker.offset
        try batch(open)
        open.removeAll(keepingCapacity: true)
      }
    }
    do {
      try classify(&tail, reason: failure ?? FormatError("the log ends inside a batch"))
    } catch { return .failure(error) }
    return .success(tail)
  }

  /// Whether a frame ends a batch; one without entries does, unless a batch is not complete yet.
  private static func endsBatch(_ front: DecodedFront, isFirst: Bool) -> Bool {
    if PlantedBug.isOn(.halfBatchKept) { return true }
    return front.entries.last?.endsBatch ?? isFirst
  }

  private static func add(
    _ fronts: [DecodedFront], to tail: inout RecoveredTail
  ) throws(FormatError) {
    for front in fronts {
      // The locator's offsets have 32 bits.
      guard front.offset + front.header.totalLength <= Int(UInt32.max) else {
        throw FormatError("a segment of more than 4 GiB")
      }
      if !front.isOpaque {
        tail.table.append(
          header: front.header, offset: front.offset, blocks: front.blocks,
          places: try front.places(), holdsRecords: front.holdsRecords)
      }
      tail.entryCount += front.header.entryCount
      for entry in front.entries {
        tail.rawBytes +=
          entry.keyLength + entry.valueLength + entry.attributesLength + Limits.entryOverheadBytes
        let time = try front.attributes(of: entry).time ?? HybridTime(entry.commitTime).timestamp
        tail.latestTime = max(tail.latestTime ?? time, time)
        tail.latestCommitTime = max(tail.latestCommitTime, entry.commitTime)
      }
      tail.lastSequence = front.header.nextSequence - 1
      tail.durableSequence = max(
        tail.durableSequence, min(front.header.durableThrough, tail.lastSequence))
    }
  }

  /// Tells a torn tail from damage, by valid frames beyond the first invalid place. A crash of the
  /// machine may lose writes before later ones, so that only a frame that says what was synced
  /// (`durableThrough`) proves damage. If the process was killed (`sameBoot`) any frame does.
  private func classify(_ tail: inout RecoveredTail, reason: FormatError) throws(FileSystemError) {
    let walker = FrameWalker(reader, salt: row.salt, codecs: codecs, from: tail.end)
    // Space that was allocated ahead: the remainder stays `clean`.
    if try walker.isZero(from: tail.end) { return }
    let expected = tail.lastSequence + 1
    // Valid frames directly at the end are of a batch that was never finished: they prove nothing.
    let firstInvalid = try firstInvalidOffset(from: tail.end, expecting: expected)
    var found: (offset: Int, header: FrameHeader)?
    var provenThrough: UInt64 = 0
    // The invalid frame's own header may be whole: it proves nothing.
    var position = firstInvalid.offset + FormatConstants.frameAlignment
    // Every frame beyond counts: the first may be older than the sync that a later one proves.
    while let next = try walker.search(from: position, sequence: firstInvalid.sequence) {
      found = found ?? next
      provenThrough = max(provenThrough, next.header.durableThrough)
      position = next.offset + FormatConstants.frameAlignment
    }
    if PlantedBug.isOn(.damageTakenForTornTail) { found = nil }
    guard let found, provenThrough >= expected || sameBoot else {
      tail.remainder = .torn(upTo: reader.length)
      return
    }
    tail.remainder = .damage(
      RecoveredTail.Damage(
        offset: firstInvalid.offset, nextFrame: found.offset, firstSequence: expected,
        lastSequence: max(expected, found.header.firstSequence - 1), reason: reason))
  }

  /// Where the first frame behind whole batches stands that is not valid, and its sequence.
  private func firstInvalidOffset(
    from start: Int, expecting sequence: UInt64
  ) throws(FileSystemError) -> (offset: Int, sequence: UInt64) {
    var walker = FrameWalker(reader, salt: row.salt, codecs: codecs, from: start)
    var expected = sequence
    while !walker.isAtEnd {
      let offset = walker.offset
      guard case .frame(let front) = try walker.next(), front.header.firstSequence == expected,
        try walker.checkBody(front) == nil
      else { return (offset, expected) }
      expected = front.header.nextSequence
    }
    return (walker.offset, expected)
  }
}
