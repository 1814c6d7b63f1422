internal import TidemarkEngine

extension Store {
  /// How often a commit that depends on a hash is tried again when somebody else touches the
  /// key in between.
  private static let hashAttempts = 16

  /// Commits on the calling thread.
  func commitBlocking(
    _ batch: WriteBatch, _ durability: Durability?
  ) throws(TidemarkError) -> Receipt {
    let durability = durability ?? engine.configuration.durability
    let result = try stage(batch, durability)
    if durability == .durable, !result.sequences.isEmpty {
      let last = result.sequences.upperBound - 1
      do { try engine.sync(through: last) } catch {
        throw TidemarkError.unknownOutcome(of: last, after: error)
      }
    }
    return Receipt(result)
  }

  /// Stages on the calling thread and awaits the sync, if there has to be one.
  ///
  /// Cancellation counts before anything is staged only: from then on others may have read it.
  func commit(_ batch: WriteBatch, _ durability: Durability?) async throws -> Receipt {
    try Task.checkCancellation()
    guard let commits else { return try commitBlocking(batch, durability) }
    let durability = durability ?? engine.configuration.durability
    let result = try stage(batch, durability)
    if durability == .durable, !result.sequences.isEmpty {
      try await commits.wait(through: result.sequences.upperBound - 1)
    }
    return Receipt(result)
  }

  /// Commits up to `buffered`.
  private func stage(
    _ batch: WriteBatch, _ durability: Durability
  ) throws(TidemarkError) -> CommitResult {
    guard !batch.hashConditions.isEmpty else {
      return try engine.stage(batch.operations, durability: durability)
    }
    var operations = batch.operations
    var attempt = 0
    while true {
      attempt += 1
      let heads = try resolve(batch.hashConditions, in: &operations)
      do { return try engine.stage(operations, durability: durability) } catch {
        guard error.code == .conflict, attempt < Self.hashAttempts,
          try haveMoved(batch.hashConditions, since: heads)
        else { throw error }
      }
    }
  }

  /// Turns conditions on hashes into conditions on the sequences that carry them now.
  private func resolve(
    _ conditions: [WriteBatch.HashCondition], in operations: inout OperationBatch
  ) throws(TidemarkError) -> [UInt64] {
    let view = try engine.view()
    var heads: [UInt64] = []
    for condition in conditions {
      guard let entry = try engine.entry(forKey: condition.key.rawSpan, in: view),
        try engine.info(entry).attributes.hash == condition.hash
      else {
        throw TidemarkError(
          .conflict, "the key does not have this validator hash; read it again and decide")
      }
      operations.replaceCondition(condition.index, with: .sequence(entry.sequence))
      heads.append(entry.sequence)
    }
    return heads
  }

  private func haveMoved(
    _ conditions: [WriteBatch.HashCondition], since heads: [UInt64]
  ) throws(TidemarkError) -> Bool {
    for (condition, head) in zip(conditions, heads)
    where try engine.slot(ofKey: condition.key.rawSpan)?.sequence != head { return true }
    return false
  }
}
