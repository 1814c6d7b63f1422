/// Hears which keys were written, right after their commit: for those who show a store's state.
package final class CommitListener: Sendable {
  private let isOn = AtomicFlag()
  private let keyWritten: @Sendable (RawSpan) -> Void
  private let commitEnded: @Sendable () -> Void

  /// - Parameters:
  ///   - keyWritten: is called with each key that a commit wrote; short, and without a wait.
  ///   - commitEnded: is called when all keys of a commit were told.
  package init(
    keyWritten: @escaping @Sendable (RawSpan) -> Void, commitEnded: @escaping @Sendable () -> Void
  ) {
    self.keyWritten = keyWritten
    self.commitEnded = commitEnded
  }

  /// Whether it wants to hear anything.
  package func listen(_ listens: Bool) { isOn.isSet = listens }

  func note(_ batch: OperationBatch) {
    guard isOn.isSet else { return }
    for operation in batch.operations where operation.kind != .record {
      keyWritten(batch.key(of: operation))
    }
    commitEnded()
  }

  /// Tells of a key by itself.
  package func note(_ key: [UInt8]) { note(key.rawSpan) }

  func note(_ key: RawSpan) {
    guard isOn.isSet else { return }
    keyWritten(key)
    commitEnded()
  }
}

extension Engine {
  /// Sets who hears of commits, once.
  package func listen(with listener: CommitListener) { _ = self.listener.set(listener) }
}
