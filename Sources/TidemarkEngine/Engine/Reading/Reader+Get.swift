extension Reader {
  /// Calls `body` with a key's value and sequence.
  /// - Returns: false when there is no such key.
  @usableFromInline
  package func read(
    forKey key: RawSpan, _ body: (RawSpan, UInt64) throws(TidemarkError) -> Void
  ) throws(TidemarkError) -> Bool {
    var note: HotNote?
    return try read(forKey: key, note: &note, body)
  }

  /// The same for callers that keep notes with values: words of their own, stored in the hot cache.
  /// - Parameters:
  ///   - onlyInMemory: whether a value that is not in the hot cache counts as none.
  ///   - note: on return, what ``keep(_:of:forKey:openings:)`` has stored with the value, else nil.
  package func read(
    forKey key: RawSpan, onlyInMemory: Bool = false, note: inout HotNote?,
    _ body: (RawSpan, UInt64) throws(TidemarkError) -> Void
  ) throws(TidemarkError) -> Bool {
    let hash = KeyHash.hash(key, seed: hotCache.seed)
    if try hotCache.read(key, hash: hash, note: &note, body) { return true }
    if onlyInMemory { return false }
    // Asked before the index: if the key is written in between, `insert` refuses the older value.
    let epoch = hotCache.epoch(hash)
    guard let slot = try slot(ofKey: key, hash: hash), !slot.isDeleted else { return false }
    try read(of: slot.sequence, isTouch: slot.size.isTouched) {
      (value, _) throws(TidemarkError) in
      if hotCache.isOn {
        // Cached data gets room for a note, where its reader stores the value's validity.
        hotCache.insert(
          key, hash: hash, sequence: slot.sequence, value: value,
          note: slot.size.isCached ? .unknown : nil, epoch: epoch)
        // To divide the caches' limit takes a while: done for one key in 16, and for long values.
        if hash & 15 == 0 || value.byteCount > Limits.smallBlockBytes { shareCacheBytes() }
      }
      try body(value, slot.sequence)
    }
    return true
  }

  /// Stores a note with the value of an entry, if that is in the hot cache.
  /// - Parameter openings: ``openings`` before the read. If the state was read again from the disk
  ///   since, the sequence may name another entry, and nothing is stored.
  package func keep(_ note: HotNote, of sequence: UInt64, forKey key: RawSpan, openings: UInt64) {
    let hash = KeyHash.hash(key, seed: hotCache.seed)
    hotCache.keep(note, key, hash: hash, sequence: sequence) { reopenCount.value == openings }
  }

  /// Gives decoded objects the bytes that the hot cache leaves, and decoded blocks the rest.
  func shareCacheBytes() {
    let hotBytes = hotCache.bytes
    objects.setLimit(configuration.objectBytes(beside: hotBytes))
    caches.setBlockBytes(
      LogCaches.blockBytes(of: configuration.cacheBytes, beside: hotBytes + objects.bytes))
  }

  /// A ticket of the cache of decoded objects; taken before the index is asked for the key.
  package func objectTicket(_ key: RawSpan, owner: UInt32) -> ObjectCache.Ticket {
    objects.ticket(key, owner: owner, beside: hotCache)
  }

  /// Keeps a decoded object. It counts as its key's newest until the key is written.
  package func keep(_ row: ObjectCache.Row, _ ticket: ObjectCache.Ticket, isNewest: Bool) {
    objects.keep(row, ticket, isNewest: isNewest)
    if ticket.address.hash & 15 == 0 || row.bytes > Limits.smallBlockBytes { shareCacheBytes() }
  }

  /// Calls `body` with a key's value and sequence, and returns its result.
  /// - Returns: nil when there is no such key.
  @inlinable
  package func withValue<R>(
    forKey key: RawSpan, _ body: (RawSpan, UInt64) throws(TidemarkError) -> R
  ) throws(TidemarkError) -> R? {
    var result: R?
    _ = try read(forKey: key) { (value, sequence) throws(TidemarkError) in
      result = try body(value, sequence)
    }
    return result
  }

  /// The key's newest entry by the index, be it a delete; nil for a key that it does not know.
  package func slot(ofKey key: RawSpan) throws(TidemarkError) -> Slot? {
    try slot(ofKey: key, hash: KeyHash.hash(key, seed: hashSeed))
  }

  /// Whether a put or delete is its key's newest entry and untouched; faster than ``slot(ofKey:)``.
  /// - Parameter key: that of the entry in the log with this sequence.
  package func isNewest(_ sequence: UInt64, ofKey key: RawSpan) throws(TidemarkError) -> Bool {
    try withIndex { (read) throws(IndexOrStoreError) in
      let isNewest: Bool
      do throws(IndexError) {
        isNewest = try read.index.isNewest(sequence, of: key, hash: read.index.hash(key))
      } catch { throw .index(error) }
      // Below `uncertainBelow` damage may hide a newer entry, so a yes is uncertain.
      if isNewest, sequence < read.uncertainBelow {
        throw .store(TidemarkError.possiblyStale(read.uncertainBelow))
      }
      return isNewest
    }
  }

  /// Makes ``slot(ofKey:)`` and ``isNewest(_:ofKey:)`` faster for a few dozen keys that come soon.
  /// - Parameter hashes: of the keys, by ``hashSeed``.
  package func prefetchSlots(_ hashes: [UInt64]) { reading.withLock { $0.index.prefetch(hashes) } }

  /// Seeds hashes of keys in index and hot cache; secret, so that nobody can make keys collide.
  package var hashSeed: UInt64 { hotCache.seed }

  func slot(ofKey key: RawSpan, hash: UInt64) throws(TidemarkError) -> Slot? {
    try withIndex { (read) throws(IndexOrStoreError) in
      let slot: Slot?
      do throws(IndexError) {
        slot = try read.index.lookup(key, hash: hash, maySearch: true)
      } catch { throw .index(error) }
      // Damage may hide an entry of any key below `uncertainBelow`: a newer one, or its only one.
      if read.uncertainBelow > 0, slot?.sequence ?? 0 < read.uncertainBelow {
        throw .store(TidemarkError.possiblyStale(read.uncertainBelow))
      }
      return slot
    }
  }

  /// Calls `body` with the value of a sequence, and with the sequence of the put that holds it.
  /// - Parameter isTouch: whether the entry is a touch, whose value lies at an older put.
  /// - Throws: `damaged` when the log lacks it.
  @usableFromInline
  package func read(
    of sequence: UInt64, isTouch: Bool = false,
    _ body: (RawSpan, UInt64) throws(TidemarkError) -> Void
  ) throws(TidemarkError) {
    var sequence = sequence
    if isTouch { sequence = try entry(at: sequence).head.valueSequence }
    // Compaction may replace a segment between `place` and the read; the file may be gone then, or
    // the entry dropped. Another look finds the new segment. A third failure is an error.
    for attempt in 0..<3 {
      var wasRead = false
      switch try place(of: sequence) {
      case .staged(let bytes): return try body(bytes.rawSpan, sequence)
      case .segment(let segment):
        do {
          guard let location = try segment.locate(sequence) else { break }
          return try segment.readValue(at: location, sequence: sequence, caches: caches) {
            (value) throws(TidemarkError) in
            wasRead = true
            try body(value, sequence)
          }
        } catch {
          // An error that `body` has thrown must not have it called again.
          guard !wasRead, attempt < 2, !isCurrent(segment) else { throw error }
          continue
        }
      case .nowhere: break
      }
    }
    throw missing(sequence)
  }

  /// Returns what `body` makes of the value of a sequence; see ``read(of:isTouch:_:)``.
  @inlinable
  package func withValue<R>(
    of sequence: UInt64, isTouch: Bool = false, _ body: (RawSpan, UInt64) throws(TidemarkError) -> R
  ) throws(TidemarkError) -> R {
    var result: R?
    try read(of: sequence, isTouch: isTouch) { (value, sequence) throws(TidemarkError) in
      result = try body(value, sequence)
    }
    guard let result else { throw missing(sequence) }
    return result
  }

  @usableFromInline
  package func missing(_ sequence: UInt64) -> TidemarkError {
    TidemarkError(
      .damaged, "the log lacks an entry that the index knows; run verify",
      sequences: sequence...sequence)
  }

  /// Where an entry is: in memory before it is written (with a copy of its value), or within the
  /// sequences of a segment, which may have dropped it, or in none.
  enum Place {
    case staged([UInt8])
    case segment(Segment)
    case nowhere
  }

  /// Looks in memory first: a sequence that is not written yet belongs to no frame of a segment.
  func place(of sequence: UInt64) throws(TidemarkError) -> Place {
    try reading.withLock { (read: inout ReadState) throws(TidemarkError) in
      try read.checkReadable()
      for frame in read.staged
      where frame.firstSequence <= sequence && sequence <= frame.lastSequence {
        let range = frame.valueRange(of: Int(sequence - frame.firstSequence))
        return .staged(Array(frame.values[range]))
      }
      if let entry = read.singleInFlight, entry.sequence == sequence {
        return .staged(Array(entry.value))
      }
      guard let segment = read.segment(covering: sequence) else { return .nowhere }
      return .segment(segment)
    }
  }

  /// An entry of the log without its value. If it is staged, all staged entries are written first.
  /// - Throws: `damaged` when the log lacks it.
  package func entry(at sequence: UInt64) throws(TidemarkError) -> LogEntry {
    guard let entry = try entryIfKept(at: sequence) else { throw missing(sequence) }
    return entry
  }

  /// An entry of the log; nil when compaction dropped it.
  package func entryIfKept(at sequence: UInt64) throws(TidemarkError) -> LogEntry? {
    for attempt in 0..<3 {
      switch try place(of: sequence) {
      case .nowhere: return nil
      case .staged:
        try withAllInLog()
      case .segment(let segment):
        do {
          if let entry = try segment.head(of: sequence, caches: caches) { return entry }
          // Dropped; unless a compaction has replaced the segment meanwhile: look at the new one.
          if isCurrent(segment) { return nil }
        } catch {
          guard attempt < 2, !isCurrent(segment) else { throw error }
          continue
        }
      }
    }
    return nil
  }

  /// All that is known of an entry but its value.
  package func info(_ entry: LogEntry) throws(TidemarkError) -> EntryInfo {
    let info = try EntryInfo(ofOwn: entry)
    guard info.kind == .touch else { return info }
    return try info.renewing(try self.entry(at: info.valueSequence))
  }
}
