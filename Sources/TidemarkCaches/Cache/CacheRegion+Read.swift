internal import TidemarkEngine

/// Reads of single keys, each in one look: the value through the store's hot cache, the head of its
/// entry only for who asks for it.
extension CacheRegion {
  /// A key's value with what its newest entry tells.
  struct Found {
    var value: [UInt8]
    var info: EntryInfo
    /// Nil for what the user owns.
    var validity: Validity?
  }

  /// The value of a key of which is known how long it is valid; counts as a hit and a use.
  /// - Parameters:
  ///   - key: without the cache's prefix.
  ///   - isAtHand: whether only a value counts that is in the hot cache and is valid. Then nothing
  ///     is read from the disk, so that the main actor may ask.
  /// - Returns: nil where somebody has to look closer.
  func knownValue(
    ofKey key: RawSpan, isAtHand: Bool = false
  ) throws(TidemarkError) -> [UInt8]? {
    let (prefix, openings) = (prefix, reader.openings)
    return try withJoined(prefix.rawSpan, key) { (key) throws(TidemarkError) in
      // The first read of an entry learns how long it is valid; others need not look.
      guard let read = try read(key, onlyInMemory: isAtHand),
        let validity = read.validity ?? validity(of: read.sequence),
        noteHit(read.sequence, validity, onlyValid: isAtHand)
      else { return nil }
      if read.validity == nil {
        reader.keep(validity.note, of: read.sequence, forKey: key, openings: openings)
      }
      return read.value
    }
  }

  private struct Read {
    var value: [UInt8]
    var sequence: UInt64
    /// Until when the value is valid, if the hot cache keeps that beside it; nil tells nothing.
    var validity: Validity?
  }

  private func read(_ key: RawSpan, onlyInMemory: Bool = false) throws(TidemarkError) -> Read? {
    var found: Read?
    var note: HotNote?
    _ = try reader.read(forKey: key, onlyInMemory: onlyInMemory, note: &note) {
      (value, sequence) in
      found = Read(value: [UInt8](copying: value), sequence: sequence)
    }
    found?.validity = note.map { Validity($0) }
    return found
  }

  /// A key's value and entry; nil when there is none.
  func find(_ key: [UInt8]) throws(TidemarkError) -> Found? {
    while true {
      let (epoch, openings) = (reader.hotCache.epoch(ofKey: key.rawSpan), reader.openings)
      guard let read = try read(key.rawSpan) else { return nil }
      if let validity = read.validity,
        let info = reader.hotCache.info(of: read.sequence, forKey: key.rawSpan)
      {
        return Found(value: read.value, info: info, validity: validity)
      }
      guard let entry = try reader.entryIfKept(at: read.sequence) else {
        // Written over in between, and dropped by a compaction: there is a newer one.
        try reader.checkReadable()
        continue
      }
      let info = try reader.info(entry)
      let isOwned = info.attributes.entryClass == .owned
      let validity = isOwned ? nil : try validity(of: entry, info)
      if let validity {
        if read.validity == nil {
          reader.keep(validity.note, of: read.sequence, forKey: key.rawSpan, openings: openings)
        }
        // A compaction may write the time of creation into an entry that has a version below it.
        if info.created != 0 || info.previous == 0 {
          reader.hotCache.keep(
            info, behind: read.value, forKey: key.rawSpan, note: validity.note, epoch: epoch)
        }
      }
      return Found(value: read.value, info: info, validity: validity)
    }
  }

  /// How long an entry's value is valid.
  /// - Parameter info: the facts about the entry.
  func validity(of entry: LogEntry, _ info: EntryInfo) throws(TidemarkError) -> Validity {
    var validity = try Validity(of: entry, info)
    if PlantedBug.isOn(.readsExtendValidity), let use = use(of: entry.sequence) {
      validity.validated = Timestamp(milliseconds: use.time)
    }
    return validity
  }
}
