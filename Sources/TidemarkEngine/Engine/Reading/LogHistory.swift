/// The kept entries of one batch: they have one commit time, which no other commit has.
package struct LoggedCommit: Sendable, Hashable {
  /// A hybrid time.
  package var commitTime: UInt64
  package var firstSequence: UInt64
  package var lastSequence: UInt64
  /// How many entries of users are kept: without records (the engine's own) and derived entries.
  package var count: Int
}

/// The log in the order of time: which entries were committed together, and when.
package struct LogHistory: Sendable {
  let reader: Reader

  /// The commits that ended at or before a sequence, newest first, without those of records alone.
  /// The log is read backwards in growing windows, and each window forwards, as a cursor goes.
  /// - Parameter last: the last sequence that counts; a commit that goes on after it is left out.
  package func commits(through last: UInt64, limit: Int) throws(TidemarkError) -> [LoggedCommit] {
    var found: [LoggedCommit] = []
    var end = last
    if let cut = try commit(across: last) { end = min(last, cut.lowerBound - 1) }
    var width: UInt64 = 1024
    // One more than `limit`: the oldest commit found may begin in the next (older) window.
    while limit > 0, found.count <= limit, let high = try lastEntry(atOrBefore: end)?.sequence {
      let low = high > width ? high - width + 1 : 1
      var window = try commits(in: low...high, most: limit + 1)
      if let older = window.last, let open = found.last, older.commitTime == open.commitTime {
        // The windows have cut this commit in two.
        found[found.count - 1].firstSequence = older.firstSequence
        found[found.count - 1].count += older.count
        window.removeLast()
      } else if found.last?.count == 0 {
        found.removeLast()
      }
      // The oldest stays even without entries of users: it may have some in the older window.
      let oldest = window.first
      found += window.reversed().filter { $0.count > 0 || $0 == oldest }
      guard low > 1 else { break }
      end = low - 1
      width *= 2
    }
    return Array(found.filter { $0.count > 0 }.prefix(max(0, limit)))
  }

  /// The commits in a part of the log, newest last.
  /// - Parameter most: at least so many of the newest are returned, if there are.
  private func commits(
    in range: ClosedRange<UInt64>, most: Int
  ) throws(TidemarkError) -> [LoggedCommit] {
    var commits: [LoggedCommit] = []
    var cursor = LogCursor(
      reader, from: range.lowerBound, through: range.upperBound, includesRecords: true)
    while let entry = try cursor.next() {
      let count = LogCursor.isShown(entry.head, entry.front) ? 1 : 0
      if commits.last?.commitTime == entry.head.commitTime {
        commits[commits.count - 1].lastSequence = entry.sequence
        commits[commits.count - 1].count += count
        continue
      }
      // A commit without entries of users ends here, unless it is the first and began before.
      if commits.last?.count == 0, commits.count > 1 { commits.removeLast() }
      if commits.count >= 2 * most { commits.removeFirst(most) }
      commits.append(
        LoggedCommit(
          commitTime: entry.head.commitTime, firstSequence: entry.sequence,
          lastSequence: entry.sequence, count: count))
    }
    return commits
  }

  /// The sequences of the commit that includes a sequence and the next one; nil if none does.
  package func commit(across sequence: UInt64) throws(TidemarkError) -> Range<UInt64>? {
    guard let before = try lastEntry(atOrBefore: sequence),
      let after = try firstEntry(atOrAfter: sequence + 1),
      before.head.commitTime == after.head.commitTime
    else { return nil }
    return try sequences(committedAt: after.head.commitTime)
  }

  /// The commit that holds a sequence; nil when the entry is not kept.
  package func commit(holding sequence: UInt64) throws(TidemarkError) -> LoggedCommit? {
    guard let entry = try reader.entryIfKept(at: sequence) else { return nil }
    let range = try sequences(committedAt: entry.head.commitTime)
    return try commits(in: range.lowerBound...(range.upperBound - 1), most: 1).last
  }

  private func sequences(committedAt time: UInt64) throws(TidemarkError) -> Range<UInt64> {
    let first = time > 0 ? try firstSequence(committedAfter: time - 1) ?? 1 : 1
    let next = try firstSequence(committedAfter: time) ?? reader.lastSequence + 1
    return first..<max(first + 1, next)
  }

  /// The first sequence that is kept and was committed after a time; nil when there is none.
  ///
  /// Commit times rise with sequences, so a binary search finds it.
  /// - Parameter time: a hybrid time.
  package func firstSequence(committedAfter time: UInt64) throws(TidemarkError) -> UInt64? {
    var low: UInt64 = 1
    var high = reader.lastSequence + 1
    var found: UInt64?
    while low < high {
      let middle = low + (high - low) / 2
      guard let entry = try firstEntry(atOrAfter: middle), entry.sequence < high else {
        high = middle
        continue
      }
      if entry.head.commitTime > time {
        found = entry.sequence
        high = middle
      } else {
        low = entry.sequence + 1
      }
    }
    return found
  }

  /// The first kept entry at or after a sequence, be it a record.
  package func firstEntry(atOrAfter sequence: UInt64) throws(TidemarkError) -> LogEntry? {
    try nearestEntry(
      in: { segments in segments.filter { $0.lastSequence >= sequence } },
      { (segment) throws(TidemarkError) in try segment.sequence(atOrAfter: sequence) })
  }

  /// The last kept entry at or before a sequence, be it a record.
  package func lastEntry(atOrBefore sequence: UInt64) throws(TidemarkError) -> LogEntry? {
    try nearestEntry(
      in: { segments in segments.reversed().filter { $0.firstSequence <= sequence } },
      { (segment) throws(TidemarkError) in try segment.sequence(atOrBefore: sequence) })
  }

  /// The entry of the first sequence that `nearest` finds in the segments that `order` chooses.
  private func nearestEntry(
    in order: ([Segment]) -> [Segment], _ nearest: (Segment) throws(TidemarkError) -> UInt64?
  ) throws(TidemarkError) -> LogEntry? {
    // Entry headers are read from the log alone, so what is visible must be in it.
    try reader.writeStagedForReading()
    var attempt = 0
    while true {
      try reader.checkReadable()
      let segments = order(reader.segments)
      var current: Segment?
      do throws(TidemarkError) {
        for segment in segments {
          current = segment
          guard let sequence = try nearest(segment) else { continue }
          return try segment.head(of: sequence, caches: reader.caches)
        }
        return nil
      } catch {
        // If a compaction has replaced the segment, its file may be gone: look at the new ones.
        attempt += 1
        guard attempt < 3, let current, !reader.isCurrent(current) else { throw error }
      }
    }
  }
}
