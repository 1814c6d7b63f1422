/// Which state of the log a date means, and when a key was created.
extension LogHistory {
  /// The last sequence that was committed at or before a date, by commit times: these are of this
  /// store's clock and never fall, whatever "own" times callers have given their entries.
  /// - Throws: `historyGone` when the state of that date is no longer kept.
  package func sequence(at date: Timestamp) throws(TidemarkError) -> UInt64 {
    let (manifest, visible) = try reader.reading.withLock {
      (read: inout ReadState) throws(TidemarkError) in
      try read.checkReadable()
      return (read.manifest, read.visible)
    }
    guard let limit = HybridTime.last(at: date) else {
      // Before 1970 nothing was committed: the state is the empty one, if that is still kept.
      try manifest.checkKept(0)
      return 0
    }
    let next = try firstSequence(committedAfter: limit)
    let reached = next.map { min($0 - 1, visible) } ?? visible
    try manifest.checkKept(reached)
    // The entry at `historyFrom` may be a delete that is gone, and its commit time with it. If none
    // from there on is known to be committed by the date, but some later, that may be one: refuse.
    if manifest.historyFrom > 1, try reader.entryIfKept(at: manifest.historyFrom) == nil,
      try lastEntry(atOrBefore: reached)?.sequence ?? 0 < manifest.historyFrom,
      limit < manifest.latestCommitTime
    {
      try manifest.checkKept(manifest.historyFrom - 1)
    }
    return reached
  }

  /// A view of the log without entries whose own times (or else commit times) are after a date.
  /// - Throws: `historyGone` when the view needs versions that are no longer kept.
  package func view(ofOwnTimesThrough date: Timestamp) throws(TidemarkError) -> EngineView {
    while true {
      let manifest = reader.manifest
      var time = manifest.historyTime
      if manifest.historyFrom > 1 {
        if time == nil { time = try latestTime(through: manifest.historyFrom) }
        // Below `historyFrom` superseded versions are gone, so all entries up to there must count:
        // for one that does not, the version before it would be needed.
        guard let time, time <= date else {
          throw TidemarkError(
            .historyGone,
            "entries with later times of their own have replaced history that is no longer kept; "
              + "ask for a later date, or for a date of commits",
            sequences: manifest.historyFrom...manifest.historyFrom)
        }
      }
      let from = manifest.historyFrom > 1 ? manifest.historyFrom : 0
      let view = try reader.reading.withLock { (read: inout ReadState) throws(TidemarkError) in
        try read.checkReadable()
        // A compaction has dropped more since the check above: look again.
        guard read.manifest.historyFrom == manifest.historyFrom else { return nil as EngineView? }
        // The pin keeps all later versions: of each key any may be the last that counts.
        read.views[from, default: 0] += 1
        return EngineView(
          reader, sequence: read.visible, epoch: read.manifest.epoch(of: read.visible),
          pinned: from, ownTimeLimit: date)
      }
      if let view { return view }
    }
  }

  /// The latest of the entries' own times up to a sequence; nil when there is no entry.
  func latestTime(through sequence: UInt64) throws(TidemarkError) -> Timestamp? {
    let log = reader.snapshot
    let manifest = log.manifest
    var latest = manifest.historyFrom > 1 ? manifest.historyTime : nil
    for segment in log.segments where segment.firstSequence <= sequence {
      // MANIFEST has the latest time of each sealed segment; only a part of one has to be read.
      if segment.lastSequence <= sequence,
        let time = manifest.segments.first(where: { $0.id == segment.id })?.latestTime
      {
        latest = max(latest ?? time, time)
        continue
      }
      var cursor = LogCursor(
        reader, from: segment.firstSequence, through: min(sequence, segment.lastSequence))
      while let entry = try cursor.next() {
        let time = try entry.time()
        latest = max(latest ?? time, time)
      }
    }
    return latest
  }

  /// When a key was created: the commit time of its oldest version since it was last absent.
  ///
  /// Walks the links from version to version, and remembers what a long walk has found.
  /// - Returns: a hybrid time: 48 bits of milliseconds since 1970, 16 bits of a counter.
  package func created(_ info: EntryInfo) throws(TidemarkError) -> UInt64 {
    if info.created != 0 { return info.created }
    var time = info.commitTime
    var previous = info.previous
    var steps = 0
    var known: [UInt64: KnownCreations.Known] = [:]
    // Links lead strictly downward. Where compaction dropped versions, the one above has `created`.
    while previous > 0, let entry = try reader.entryIfKept(at: previous) {
      if entry.head.kind.removes { break }
      steps += 1
      if steps == KnownCreations.fewSteps { known = reader.creations.all }
      // After a crash another entry may have the sequence, with another commit time.
      let version = known[previous]
      if version?.commitTime == entry.head.commitTime, let version {
        time = version.created
        break
      }
      if entry.head.created != 0 {
        time = entry.head.created
        break
      }
      time = entry.head.commitTime
      previous = entry.head.previous
    }
    if steps >= KnownCreations.fewSteps {
      reader.creations.note(
        info.sequence, KnownCreations.Known(commitTime: info.commitTime, created: time))
    }
    return time
  }

  /// The versions of a key that are kept, newest first, deletes among them.
  /// - Parameter limit: so many at most; older ones are not looked at.
  package func versions(
    ofKey key: RawSpan, upTo sequence: UInt64 = .max, limit: Int = .max
  ) throws(TidemarkError) -> [LogEntry] {
    var entries: [LogEntry] = []
    guard limit > 0 else { return entries }
    var walk = try VersionWalk(reader, ofKey: key, upTo: sequence)
    while entries.count < limit, let entry = try walk.next() { entries.append(entry) }
    return entries
  }
}

extension LogEntry {
  /// The entry's own time; where none was given, its commit time.
  package func time() throws(TidemarkError) -> Timestamp {
    try attributes().time ?? HybridTime(head.commitTime).timestamp
  }
}

extension EntryInfo {
  /// The put's own time; where none was given, its commit time.
  package var time: Timestamp { attributes.time ?? HybridTime(updated).timestamp }
}

extension HybridTime {
  /// The last reading whose wall clock shows no more than a date; nil before 1970.
  static func last(at date: Timestamp) -> UInt64? {
    let milliseconds = date.milliseconds
    guard milliseconds >= 0 else { return nil }
    return milliseconds < 1 << 48 ? UInt64(milliseconds) << 16 | 0xffff : .max
  }
}
