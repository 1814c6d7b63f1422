/// Entries of the log, many at a time.
package struct LogEntries: Sendable {
  let reader: Reader

  /// So many entries are worth asking for together, where more are wanted.
  package static let mostTogether = 16_384

  /// Where a head lies.
  private struct HeadPlace {
    /// Which of the segments that were met.
    var segment: Int
    var record: FrameRecord
    var entry: Int
    /// Which of the entries that were asked for.
    var index: Int
  }

  /// Calls `body` with entries in the order in which they lie in the log: the heads of a frame, of
  /// which one cannot be decoded without those before it, are decoded once for all that are wanted
  /// of them, whatever the caches hold.
  /// - Parameters:
  ///   - sequences: the entries'.
  ///   - body: gets the index of a sequence, and its entry, which keeps the heads of its frame.
  /// - Throws: what ``Reader/entry(at:)`` throws, and what `body` throws.
  package func forEach(
    at sequences: [UInt64], _ body: (Int, LogEntry) throws(TidemarkError) -> Void
  ) throws(TidemarkError) {
    var (segments, places, rest) = headPlaces(of: sequences)
    places.sort {
      ($0.segment, $0.record.offset, $0.entry) < ($1.segment, $1.record.offset, $1.entry)
    }
    var next = 0
    while next < places.count {
      let first = places[next]
      let end =
        places[next...].firstIndex {
          $0.segment != first.segment || $0.record.offset != first.record.offset
        } ?? places.count
      let group = places[next..<end]
      next = end
      let segment = segments[first.segment]
      // One that is asked for twice is decoded once.
      var wanted: [Int] = []
      for place in group where place.entry != wanted.last { wanted.append(place.entry) }
      let some = try? segment.heads(of: wanted, in: first.record, caches: reader.caches)
      // An entry that a compaction has just moved is found by its sequence.
      guard let front = try? some ?? segment.front(first.record, caches: reader.caches) else {
        rest += group.map(\.index)
        continue
      }
      var number = 0
      for place in group {
        if wanted[number] != place.entry { number += 1 }
        let index = some == nil ? place.entry : number
        guard index < front.entries.count,
          front.entries[index].sequence == sequences[place.index]
        else {
          rest.append(place.index)
          continue
        }
        let head = front.entries[index]
        try body(place.index, LogEntry(segment: segment, front: front, head: head))
      }
    }
    for index in rest { try body(index, try reader.entry(at: sequences[index])) }
  }

  /// - Returns: also the indices of those that are to be found by themselves.
  private func headPlaces(
    of sequences: [UInt64]
  ) -> (segments: [Segment], places: [HeadPlace], rest: [Int]) {
    var segments: [Segment] = []
    var places: [HeadPlace] = []
    places.reserveCapacity(sequences.count)
    var rest: [Int] = []
    for (index, sequence) in sequences.enumerated() {
      guard case .segment(let segment) = try? reader.place(of: sequence),
        let found = (try? segment.frame(holding: sequence)) ?? nil
      else {
        rest.append(index)
        continue
      }
      var number = segments.count - 1
      while number >= 0, segments[number] !== segment { number -= 1 }
      if number < 0 {
        number = segments.count
        segments.append(segment)
      }
      places.append(
        HeadPlace(segment: number, record: found.record, entry: found.entry, index: index))
    }
    return (segments, places, rest)
  }

  /// Calls `body` with all that is known of entries, in the order of ``forEach(at:_:)`` but
  /// for touches, which come last.
  /// - Parameters:
  ///   - sequences: the entries'.
  ///   - body: gets the index of a sequence, and the entry's key.
  package func forEachInfo(
    at sequences: [UInt64], _ body: (Int, RawSpan, EntryInfo) throws(TidemarkError) -> Void
  ) throws(TidemarkError) {
    var touches: [(index: Int, key: [UInt8], info: EntryInfo)] = []
    try forEach(at: sequences) { (index, entry) throws(TidemarkError) in
      let info = try EntryInfo(ofOwn: entry)
      guard info.kind == .touch else {
        return try body(index, entry.front.key(of: entry.head), info)
      }
      touches.append((index, entry.key, info))
    }
    guard !touches.isEmpty else { return }
    let puts = touches.map(\.info.valueSequence)
    try forEach(at: puts) { (number, put) throws(TidemarkError) in
      let touch = touches[number]
      try body(touch.index, touch.key.rawSpan, try touch.info.renewing(put))
    }
  }

  /// Calls `body` with all that is known of the entries of rows.
  /// - Parameter body: gets the index of a row.
  /// - Throws: `damaged` also where an entry is of another key than its row.
  package func forEachInfo(
    of rows: [ScanRow], _ body: (Int, EntryInfo) throws(TidemarkError) -> Void
  ) throws(TidemarkError) {
    try forEachInfo(at: rows.map(\.sequence)) { (index, key, info) throws(TidemarkError) in
      let row = rows[index]
      if !key.isEqual(to: row.key.rawSpan) { _ = try entry(of: row) }
      try body(index, info)
    }
  }

  /// The entry of a row.
  /// - Throws: `damaged` also where it is of another key.
  package func entry(of row: ScanRow) throws(TidemarkError) -> LogEntry {
    let found = try reader.entry(at: row.sequence)
    try reader.check(found, isOf: row.key.rawSpan)
    return found
  }
}
