/// What is known of an entry, kept behind its value for callers that ask for both.
extension HotCache {
  /// ``epoch(_:)`` of a key.
  package func epoch(ofKey key: RawSpan) -> UInt64 { epoch(KeyHash.hash(key, seed: seed)) }

  /// What ``keep(_:behind:forKey:note:epoch:)`` has stored with the value of an entry.
  package func info(of sequence: UInt64, forKey key: RawSpan) -> EntryInfo? {
    facts(key, hash: KeyHash.hash(key, seed: seed), ofEntry: sequence).flatMap {
      try? EntryInfo(decoding: $0.rawSpan, sequence: sequence)
    }
  }

  /// Stores what is known of an entry behind its value, where that is short: long values take more
  /// time to read than their entries.
  /// - Parameter epoch: what ``epoch(ofKey:)`` said before both were read.
  package func keep(
    _ info: EntryInfo, behind value: [UInt8], forKey key: RawSpan, note: HotNote, epoch: UInt64
  ) {
    let facts = info.encoded()
    guard value.count + facts.count <= Limits.factsBytes else { return }
    var note = note
    note.factBytes = facts.count
    insert(
      key, hash: KeyHash.hash(key, seed: seed), sequence: info.sequence,
      value: (value + facts).rawSpan, note: note, epoch: epoch)
  }
}
