extension Segment {
  /// Where the value of a sequence stands.
  /// - Returns: nil when the segment does not hold the sequence (compaction dropped it).
  package func locate(_ sequence: UInt64) throws(TidemarkError) -> ValueLocation? {
    let id = id
    let location: ValueLocation?? = try withLocator(
      active: { (table) throws(TidemarkError) -> ValueLocation?? in
        guard let slot = slot(of: sequence, count: table.slots.count) else { return .some(nil) }
        let next =
          slot + 1 < table.slots.count
          ? table.slots[slot + 1] : ValuePlace(block: UInt32(table.blocks.count), position: 0)
        let found: ValueLocation? = ValueLocation(
          segmentID: id, place: table.slots[slot], next: next, block: { table.blocks[$0] })
        return found.map { .some($0) }
      },
      sealed: { (locator) throws(LogReadError) -> ValueLocation?? in
        guard let slot = try slot(of: sequence, in: locator) else { return .some(nil) }
        let found: ValueLocation? = try ValueLocation(
          segmentID: id, place: try locator.place(ofSlot: slot),
          next: try locator.place(ofSlot: slot + 1),
          block: { (index) throws(LogReadError) in try locator.block(index) })
        return found.map { .some($0) }
      })
    guard let location else {
      throw damage(
        .format(FormatError("locator contradicts itself")), offset: 0,
        sequences: sequence...sequence)
    }
    return location
  }

  /// The frame that holds a sequence, and which of its entries it is.
  /// - Returns: nil when the segment does not hold the sequence.
  package func frame(
    holding sequence: UInt64
  ) throws(TidemarkError) -> (record: FrameRecord, entry: Int)? {
    try withLocator(
      active: { (table) throws(TidemarkError) in
        guard let slot = slot(of: sequence, count: table.slots.count) else { return nil }
        let index = Self.lastFrame(count: table.frames.count) {
          Int(table.frames[$0].firstSlot) <= slot
        }
        guard let index else { return nil }
        return (table.frames[index], slot - Int(table.frames[index].firstSlot))
      },
      sealed: { (locator) throws(LogReadError) in
        guard let slot = try slot(of: sequence, in: locator) else { return nil }
        let index = try Self.lastFrame(count: locator.footer.frameCount) {
          (index) throws(LogReadError) in
          Int(try locator.frame(index).firstSlot) <= slot
        }
        guard let index else { return nil }
        let record = try locator.frame(index)
        return (record, slot - Int(record.firstSlot))
      })
  }

  /// The frames of the segment, in file order.
  package func frames() throws(TidemarkError) -> [FrameRecord] {
    try withLocator(
      active: { (table) throws(TidemarkError) in table.frames },
      sealed: { (locator) throws(LogReadError) in
        var frames: [FrameRecord] = []
        for i in 0..<locator.footer.frameCount { frames.append(try locator.frame(i)) }
        return frames
      })
  }

  /// The last frame for which `isAtOrBefore` holds, by binary search.
  private static func lastFrame<E: Error>(
    count: Int, _ isAtOrBefore: (Int) throws(E) -> Bool
  ) throws(E) -> Int? {
    var low = 0
    var high = count
    while low < high {
      let middle = (low + high) / 2
      if try isAtOrBefore(middle) { low = middle + 1 } else { high = middle }
    }
    return low == 0 ? nil : low - 1
  }

  private func slot(of sequence: UInt64, count: Int) -> Int? {
    guard sequence >= firstSequence, sequence - firstSequence < UInt64(count) else { return nil }
    return Int(sequence - firstSequence)
  }

  private func slot(
    of sequence: UInt64, in locator: SealedLocator
  ) throws(LogReadError) -> Int? {
    guard kind == .compacted else {
      return slot(of: sequence, count: locator.footer.slotCount)
    }
    let low = try place(of: sequence, in: locator)
    guard low < locator.footer.sequenceCount else { return nil }
    let record = try locator.sequence(low)
    guard record.sequence == sequence, record.slot < locator.footer.slotCount else { return nil }
    return record.slot
  }

  /// Most guesses before a search only halves.
  private static let guesses = 8

  /// How many of a compacted segment's sequences are below one. They lie about evenly, so that
  /// guesses from the bounds find most with few looks: W. W. Peterson, "Addressing for
  /// random-access storage", 1957.
  private func place(
    of sequence: UInt64, in locator: SealedLocator
  ) throws(LogReadError) -> Int {
    var low = 0
    var high = locator.footer.sequenceCount
    // Bounds of the sequences from `low` on and below `high`.
    var least = locator.footer.firstSequence
    var past = max(locator.footer.lastSequence, least) + 1
    var guesses = 0
    while low < high {
      var middle = (low + high) / 2
      if guesses < Self.guesses, sequence >= least, sequence < past {
        let share = (sequence - least).multipliedFullWidth(by: UInt64(high - low))
        let (quotient, _) = (past - least).dividingFullWidth(share)
        middle = min(low + Int(clamping: quotient), high - 1)
        guesses += 1
      }
      let found = try locator.sequence(middle).sequence
      if found < sequence {
        low = middle + 1
        least = found + 1
      } else {
        high = middle
        past = max(found, least)
      }
    }
    return low
  }

  /// The first sequence that the segment holds at or after one.
  package func sequence(atOrAfter sequence: UInt64) throws(TidemarkError) -> UInt64? {
    try nearest { (count) in
      let slot = sequence > firstSequence ? sequence - firstSequence : 0
      return slot < UInt64(count) ? firstSequence + slot : nil
    } compacted: { (locator) throws(LogReadError) in
      let place = try place(of: sequence, in: locator)
      return place < locator.footer.sequenceCount ? try locator.sequence(place).sequence : nil
    }
  }

  /// The last sequence that the segment holds at or before one.
  package func sequence(atOrBefore sequence: UInt64) throws(TidemarkError) -> UInt64? {
    try nearest { (count) in
      guard sequence >= firstSequence, count > 0 else { return nil }
      return firstSequence + min(sequence - firstSequence, UInt64(count) - 1)
    } compacted: { (locator) throws(LogReadError) in
      let all = locator.footer.sequenceCount
      let place = sequence == .max ? all : try place(of: sequence + 1, in: locator)
      return place > 0 ? try locator.sequence(place - 1).sequence : nil
    }
  }

  /// - Parameters:
  ///   - appended: what holds where the sequences of so many slots are dense.
  ///   - compacted: what holds where some may be missing.
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
