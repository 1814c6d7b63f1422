/// Finds entries by sequence: in the locator in memory while the segment is appended to, else in
/// the one at the end of its file. A slot is an entry's place in the segment, in file order.
extension Segment {
  /// Where the value of a sequence stands.
  /// - Returns: nil when the segment does not hold the sequence (compaction dropped it).
  package func locate(_ sequence: UInt64) throws(TidemarkError) -> ValueLocation? {
    try withLocator(
      active: { (table) throws(TidemarkError) -> ValueLocation? in
        guard let slot = slot(of: sequence, count: table.slots.count) else { return nil }
        let next =
          slot + 1 < table.slots.count
          ? table.slots[slot + 1] : ValuePlace(block: UInt32(table.blocks.count), position: 0)
        if let location = ValueLocation(
          segmentID: id, place: table.slots[slot], next: next, block: { table.blocks[$0] })
        {
          return location
        }
        // With `sequences` it does not take the lock, which is held here.
        throw damage(
          .format(FormatError("locator contradicts itself")), offset: 0,
          sequences: sequence...sequence)
      },
      sealed: { (locator) throws(LogReadError) -> ValueLocation? in
        guard let slot = try locator.slot(of: sequence) else { return nil }
        return try locator.location(ofSlot: slot, segmentID: id)
      })
  }

  /// The locator of a sealed segment; nil while the segment is appended to.
  func sealedLocator() throws(TidemarkError) -> SealedLocator? {
    try withLocator(
      active: { (_) throws(TidemarkError) in nil },
      sealed: { (locator) throws(LogReadError) in locator })
  }

  /// The frame that holds a sequence, and which of its entries it is.
  /// - Returns: nil when the segment does not hold the sequence.
  package func frame(
    holding sequence: UInt64
  ) throws(TidemarkError) -> (record: FrameRecord, entry: Int)? {
    try withLocator(
      active: { (table) throws(TidemarkError) in
        guard let slot = slot(of: sequence, count: table.slots.count) else { return nil }
        guard let record = table.frame(holdingSlot: slot) else { return nil }
        return (record, slot - Int(record.firstSlot))
      },
      sealed: { (locator) throws(LogReadError) in
        guard let slot = try locator.slot(of: sequence) else { return nil }
        guard let record = try locator.frame(holdingSlot: slot) else { return nil }
        return (record, slot - Int(record.firstSlot))
      })
  }

  /// The frames of the segment: those of history first, so that the entries of a key come in order
  /// of their sequences, else in file order.
  package func frames() throws(TidemarkError) -> [FrameRecord] {
    let frames = try allFrames()
    guard frames.contains(where: \.isHistory) else { return frames }
    return frames.filter(\.isHistory) + frames.filter { !$0.isHistory }
  }

  /// The frames of history (superseded versions, which compaction packs apart), or the others, in
  /// file order: of a compacted segment their entries are sorted by key and sequence.
  package func frames(ofHistory isHistory: Bool) throws(TidemarkError) -> [FrameRecord] {
    try allFrames().filter { $0.isHistory == isHistory }
  }

  /// Whether the locator says that no entry is a record, which the engine writes for itself.
  func isRecordless() throws(TidemarkError) -> Bool {
    try withLocator(
      active: { (table) throws(TidemarkError) in !table.holdsRecords },
      sealed: { (locator) throws(LogReadError) in locator.footer.isRecordless })
  }

  private func allFrames() throws(TidemarkError) -> [FrameRecord] {
    try withLocator(
      active: { (table) throws(TidemarkError) in table.frames },
      sealed: { (locator) throws(LogReadError) in
        var frames: [FrameRecord] = []
        for i in 0..<locator.footer.frameCount { frames.append(try locator.frame(i)) }
        return frames
      })
  }

  /// The slot of a sequence in a segment that was appended, whose sequences are dense.
  private func slot(of sequence: UInt64, count: Int) -> Int? {
    guard sequence >= firstSequence, sequence - firstSequence < UInt64(count) else { return nil }
    return Int(sequence - firstSequence)
  }

  /// The first sequence that the segment holds at or after `sequence`.
  package func sequence(atOrAfter sequence: UInt64) throws(TidemarkError) -> UInt64? {
    try nearest { (count) in
      let slot = sequence > firstSequence ? sequence - firstSequence : 0
      return slot < UInt64(count) ? firstSequence + slot : nil
    } compacted: { (locator) throws(LogReadError) in
      let place = try locator.sequences(below: sequence)
      return place < locator.footer.sequenceCount ? try locator.sequence(place).sequence : nil
    }
  }

  /// The last sequence that the segment holds at or before `sequence`.
  package func sequence(atOrBefore sequence: UInt64) throws(TidemarkError) -> UInt64? {
    try nearest { (count) in
      guard sequence >= firstSequence, count > 0 else { return nil }
      return firstSequence + min(sequence - firstSequence, UInt64(count) - 1)
    } compacted: { (locator) throws(LogReadError) in
      let all = locator.footer.sequenceCount
      let place = sequence == .max ? all : try locator.sequences(below: sequence + 1)
      return place > 0 ? try locator.sequence(place - 1).sequence : nil
    }
  }

  /// - Parameters:
  ///   - appended: finds it where the sequences of so many slots are dense.
  ///   - compacted: finds it where some sequences may be missing.
  private func nearest(
    _ appended: (_ count: Int) -> UInt64?,
    compacted: (SealedLocator) throws(LogReadError) -> UInt64?
  ) throws(TidemarkError) -> UInt64? {
    try withLocator(
      active: { (table) throws(TidemarkError) in appended(table.slots.count) },
      sealed: { (locator) throws(LogReadError) in
        kind == .compacted ? try compacted(locator) : appended(locator.footer.slotCount)
      })
  }
}
