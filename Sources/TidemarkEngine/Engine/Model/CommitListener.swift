/// Hears which keys were written, right after their commit: for those who show a store's state.
///
/// A key that nobody may want to hear of costs a look at a filter, without a lock.
package final class CommitListener: Sendable {
  private let isOn = AtomicFlag()
  private let hearsAll = AtomicFlag()
  private let filter = KeyFilter()
  private let seed: UInt64
  private let keyWritten: @Sendable (RawSpan, UInt64) -> Void
  private let commitEnded: @Sendable () -> Void

  /// - Parameters:
  ///   - seed: seeds the hashes of keys.
  ///   - keyWritten: is called with a key that a commit wrote, and its hash; short, and without a
  ///     wait.
  ///   - commitEnded: is called when all keys of a commit were told, if there was one.
  package init(
    seed: UInt64, keyWritten: @escaping @Sendable (RawSpan, UInt64) -> Void,
    commitEnded: @escaping @Sendable () -> Void
  ) {
    self.seed = seed
    self.keyWritten = keyWritten
    self.commitEnded = commitEnded
  }

  /// Wants to hear of a key, besides those that it wanted to hear of before. Nobody else changes
  /// what it wants meanwhile.
  package func listen(to hash: UInt64) {
    filter.insert(hash)
    isOn.isSet = true
  }

  /// Wants to hear of every key.
  package func listenToAll() {
    hearsAll.isSet = true
    isOn.isSet = true
  }

  /// Wants to hear of all keys no more, or of no key at all.
  package func stopListening(toAll: Bool, toKeys: Bool) {
    if toAll { hearsAll.isSet = false }
    if toKeys { filter.removeAll() }
    if toAll, toKeys { isOn.isSet = false }
  }

  func note(_ batch: OperationBatch) {
    guard isOn.isSet else { return }
    var isAny = false
    for operation in batch.operations where operation.kind != .record {
      if tell(batch.key(of: operation)) { isAny = true }
    }
    if isAny { commitEnded() }
  }

  /// Tells of a key by itself.
  package func note(_ key: RawSpan) {
    guard isOn.isSet else { return }
    if tell(key) { commitEnded() }
  }

  private func tell(_ key: RawSpan) -> Bool {
    let hash = KeyHash.hash(key, seed: seed)
    guard hearsAll.isSet || filter.mayContain(hash) else { return false }
    keyWritten(key, hash)
    return true
  }
}
