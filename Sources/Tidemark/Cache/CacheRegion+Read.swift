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

  /// The value of a key whose validity is known by heart, as it is of all that were read before;
  /// counts as a hit and a use.
  /// - Parameter onlyValid: whether one that is valid no more is left to the caller, uncounted.
  /// - Returns: nil where somebody has to look closer.
  func knownValue(
    ofKey key: [UInt8], onlyValid: Bool
  ) throws(TidemarkError) -> [UInt8]? {
    guard let read = try read(key), noteHit(read.sequence, onlyValid: onlyValid) else { return nil }
    return read.value
  }

  private func read(
    _ key: [UInt8]
  ) throws(TidemarkError) -> (value: [UInt8], sequence: UInt64)? {
    var found: (value: [UInt8], sequence: UInt64)?
    _ = try engine.read(forKey: key.rawSpan) { (value, sequence) in
      found = ([UInt8](copying: value), sequence)
    }
    return found
  }

  /// A key's value and entry; nil when there is none.
  func find(_ key: [UInt8]) throws(TidemarkError) -> Found? {
    while true {
      guard let read = try read(key) else { return nil }
      // Written over in between, and dropped by a compaction: there is a newer one.
      guard let entry = try engine.entryIfKept(at: read.sequence) else { continue }
      let info = try engine.info(entry)
      let isOwned = info.attributes.entryClass == .owned
      return Found(
        value: read.value, info: info, validity: isOwned ? nil : try validity(of: entry))
    }
  }

  /// How long an entry's value is valid.
  func validity(of entry: LogEntry) throws(TidemarkError) -> Validity {
    var validity = try engine.validity(of: entry)
    if PlantedBug.isOn(.readsExtendValidity), let use = use(of: entry.sequence) {
      validity.validated = Timestamp(milliseconds: use.time)
    }
    return validity
  }

  private func noteHit(_ sequence: UInt64, onlyValid: Bool) -> Bool {
    let now = now
    let (isNoted, isDue) = state.withLock { state in
      let isNoted = state.noteHit(sequence, at: now, onlyValid: onlyValid)
      return (isNoted, isNoted && isSaveDue(state, now: now.milliseconds))
    }
    if isDue { save() }
    return isNoted
  }
}
