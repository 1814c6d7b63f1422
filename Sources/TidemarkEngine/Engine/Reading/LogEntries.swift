/// Reads many entries of the log by their sequences, without values. An entry comes as its header
/// ("head") with the decoded headers of its frame ("front"), where its key and labels are.
package struct LogEntries: Sendable {
  let reader: Reader

  /// Callers that want more entries ask for about so many at a time.
  package static let mostTogether = 16_384

  /// Where the head of a wanted entry lies.
  private struct HeadPlace {
    /// Index into the segments that `headPlaces` returns.
    var segment: Int
    var record: FrameRecord
    /// Index among the entries of the frame.
    var entry: Int
    /// The position of the entry's sequence in the array that the caller passed.
    var index: Int
  }

  /// Calls `body` with entries in the order of the log: a head is decoded after those before it in
  /// its frame, so each frame is decoded once for all entries that are wanted of it.
  /// - Parameters:
  ///   - sequences: the entries', in any order; one may come twice.
  ///   - body: gets the index of a sequence, and its entry, which holds the heads of its frame.
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
      // Indices among the frame's entries, ascending and without repetitions.
      var wanted: [Int] = []
      for place in group where place.entry != wanted.last { wanted.append(place.entry) }
      let some = try? segment.heads(of: wanted, in: first.record, caches: reader.caches)
      // A compaction may have replaced the segment: its entries are read one by one below.
      guard let front = try? some ?? segment.front(first.record, caches: reader.caches) else {
        rest += group.map(\.index)
        continue
      }
      var number = 0
      for place in group {
        if wanted[number] != place.entry { number += 1 }
        // `some` has the wanted heads only, `front` those of the whole frame.
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

  /// - Returns: where entries lie; `rest` has the indices of those that are to be read one by one.
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

  /// Calls `body` with everything but the values of entries, in the order of the log. Touches come
  /// last: labels and the value's length come from the put that a touch renews.
  /// - Parameter body: gets the index of a sequence, and the entry's key.
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

  /// Calls `body` with everything but the values of the entries of a scan's rows.
  /// - Parameter body: gets the index of a row, in the order of the log.
  /// - Throws: `damaged` also where an entry is of another key than its row.
  package func forEachInfo(
    of rows: [ScanRow], _ body: (Int, EntryInfo) throws(TidemarkError) -> Void
  ) throws(TidemarkError) {
    try forEachInfo(at: rows.map(\.sequence)) { (index, key, info) throws(TidemarkError) in
      let row = rows[index]
      // An entry of another key means damage, in the index or the log: this throws it.
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
