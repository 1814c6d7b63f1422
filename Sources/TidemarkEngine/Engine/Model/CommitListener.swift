/// Reports the keys that each commit wrote, on the committing thread and without a lock of the
/// engine: for code that shows a store's state and renews what it shows.
///
/// The owner says which keys it wants, and calls `listen` and `stopListening` under a lock of its
/// own. Commits ask a filter without a lock, which may say yes for a key that nobody wants.
package final class CommitListener: Sendable {
  private let isOn = AtomicFlag()
  private let hearsAll = AtomicFlag()
  private let filter = KeyFilter()
  private let seed: UInt64
  private let keyWritten: @Sendable (RawSpan, UInt64) -> Void
  private let commitEnded: @Sendable () -> Void

  /// - Parameters:
  ///   - keyWritten: gets a key that a commit wrote, and its hash; must be short and not block.
  ///   - commitEnded: is called after the keys of a commit, if at least one was reported.
  package init(
    seed: UInt64, keyWritten: @escaping @Sendable (RawSpan, UInt64) -> Void,
    commitEnded: @escaping @Sendable () -> Void
  ) {
    self.seed = seed
    self.keyWritten = keyWritten
    self.commitEnded = commitEnded
  }

  /// Adds a key to those that are reported. The flag comes last: once it is set the key counts.
  package func listen(to hash: UInt64) {
    filter.insert(hash)
    isOn.isSet = true
  }

  /// Has every key reported.
  package func listenToAll() {
    hearsAll.isSet = true
    isOn.isSet = true
  }

  /// Ends the reports of every key, or of the single keys; both together end all.
  package func stopListening(toAll: Bool, toKeys: Bool) {
    if toAll { hearsAll.isSet = false }
    if toKeys { filter.removeAll() }
    if toAll, toKeys { isOn.isSet = false }
  }

  /// Reports the keys of a batch that was just committed.
  func note(_ batch: OperationBatch) {
    guard isOn.isSet else { return }
    var isAny = false
    for operation in batch.operations where operation.kind != .record {
      if report(batch.key(of: operation)) { isAny = true }
    }
    if isAny { commitEnded() }
  }

  /// Reports one key, as if a commit had written it alone.
  package func note(_ key: RawSpan) {
    guard isOn.isSet else { return }
    if report(key) { commitEnded() }
  }

  /// - Returns: false when nobody wants the key.
  private func report(_ key: RawSpan) -> Bool {
    let hash = KeyHash.hash(key, seed: seed)
    guard hearsAll.isSet || filter.mayContain(hash) else { return false }
    keyWritten(key, hash)
    return true
  }
}
