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

  /// The value of a key whose expiry time is in memory, as it is once the entry was read; counts as
  /// a hit and a use.
  /// - Returns: nil where somebody has to look closer.
  func knownValue(ofKey key: [UInt8]) throws(TidemarkError) -> [UInt8]? {
    guard let read = try read(key) else { return nil }
    let outcome = noteHit(read.sequence, onlyValid: false)
    if outcome.isSaveDue { save() }
    return outcome.isNoted ? read.value : nil
  }

  /// The value of a key if it is in the hot cache and has not expired; never reads from the disk,
  /// so that the main actor may ask.
  func valueAtHand(ofKey key: [UInt8]) throws(TidemarkError) -> [UInt8]? {
    guard let read = try read(key, onlyInMemory: true) else { return nil }
    let outcome = noteHit(read.sequence, onlyValid: true)
    if outcome.isSaveDue { Task.detached(priority: .utility) { [self] in save() } }
    return outcome.isNoted ? read.value : nil
  }

  private func read(
    _ key: [UInt8], onlyInMemory: Bool = false
  ) throws(TidemarkError) -> (value: [UInt8], sequence: UInt64)? {
    var found: (value: [UInt8], sequence: UInt64)?
    _ = try engine.reader.read(forKey: key.rawSpan, onlyInMemory: onlyInMemory) {
      (value, sequence) in
      found = ([UInt8](copying: value), sequence)
    }
    return found
  }

  /// A key's value and entry; nil when there is none.
  func find(_ key: [UInt8]) throws(TidemarkError) -> Found? {
    while true {
      guard let read = try read(key) else { return nil }
      guard let entry = try engine.reader.entryIfKept(at: read.sequence) else {
        // Written over in between, and dropped by a compaction: there is a newer one.
        try engine.reader.checkReadable()
        continue
      }
      let info = try engine.reader.info(entry)
      let isOwned = info.attributes.entryClass == .owned
      return Found(
        value: read.value, info: info, validity: isOwned ? nil : try validity(of: entry, info))
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

  private func noteHit(
    _ sequence: UInt64, onlyValid: Bool
  ) -> (isNoted: Bool, isSaveDue: Bool) {
    let (now, takeovers) = (now, engine.takeovers)
    return state.withLock { state in
      // Another process may have given the sequence to another entry.
      if takeovers != state.takeovers { state.order = nil }
      let isNoted = state.noteHit(sequence, at: now, onlyValid: onlyValid)
      return (isNoted, isNoted && state.takesSave(now: now.milliseconds))
    }
  }
}
