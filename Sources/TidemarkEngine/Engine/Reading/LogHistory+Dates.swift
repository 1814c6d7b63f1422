extension LogHistory {
  /// The last sequence that was committed at or before a date: whatever time of its own an entry
  /// has, its commit time is that of this store's clock, and never less than the one before it.
  /// - Throws: `historyGone` when the state of that date is no longer kept.
  package func sequence(at date: Timestamp) throws(TidemarkError) -> UInt64 {
    let (manifest, visible) = try reader.reading.withLock {
      (read: inout ReadState) throws(TidemarkError) in
      try read.checkReadable()
      return (read.manifest, read.visible)
    }
    let limit = HybridTime.last(at: date)
    guard let limit else {
      try Reader.checkKept(0, manifest)
      return 0
    }
    let next = try firstSequence(committedAfter: limit)
    let reached = next.map { min($0 - 1, visible) } ?? visible
    try Reader.checkKept(reached, manifest)
    // The entry from which history is kept may be gone itself, a delete. When it was committed is
    // not known then: no later than what comes behind it, or than what was sealed last.
    if manifest.historyFrom > 1, try reader.entryIfKept(at: manifest.historyFrom) == nil,
      try lastEntry(atOrBefore: reached)?.sequence ?? 0 < manifest.historyFrom,
      limit < manifest.latestCommitTime
    {
      try Reader.checkKept(manifest.historyFrom - 1, manifest)
    }
    return reached
  }

  /// A view of the whole log that leaves out entries whose own times are after a date; where an
  /// entry has none, its commit time counts.
  /// - Throws: `historyGone` when an entry may count whose versions before are no longer kept.
  package func view(ofOwnTimesThrough date: Timestamp) throws(TidemarkError) -> EngineView {
    while true {
      let manifest = reader.manifest
      var time = manifest.historyTime
      if manifest.historyFrom > 1 {
        if time == nil { time = try latestTime(through: manifest.historyFrom) }
        // Up to there everything counts, or else what it has replaced is missing.
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
        guard read.manifest.historyFrom == manifest.historyFrom else { return nil as EngineView? }
        // All versions behind it stay, since each may be the last that counts.
        read.views.pin(from)
        return EngineView(
          reader, sequence: read.visible, epoch: read.manifest.epoch(of: read.visible),
          pinned: from,
          ownTimeLimit: date)
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

  /// When the oldest version since the key was last absent was committed.
  ///
  /// A key that is written and read in turns has a long history, of which each read walks only what
  /// is new since the one before.
  /// - Returns: a hybrid time.
  package func created(_ info: EntryInfo) throws(TidemarkError) -> UInt64 {
    if info.created != 0 { return info.created }
    var time = info.commitTime
    var previous = info.previous
    var steps = 0
    var known: [UInt64: KnownCreations.Known] = [:]
    // Links lead strictly downward, so this ends.
    while previous > 0, let entry = try reader.entryIfKept(at: previous) {
      if entry.head.kind.removes { break }
      steps += 1
      if steps == KnownCreations.fewSteps { known = reader.creations.all }
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
  /// - Parameters:
  ///   - sequence: newer versions are passed over.
  ///   - limit: so many at most; older ones are not looked at.
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
