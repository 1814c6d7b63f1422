internal import Tidemark
internal import TidemarkEngine
internal import TidemarkSyncProtocol

/// The calls that a session may make, as the budget says.
package struct SyncGate: Sendable, Hashable {
  /// Whether hello and what follows are all, and of own entries those of `leastPriority`.
  var isNarrow = false
  /// Nil for none, where it is narrow.
  var leastPriority: Int?
  /// About how many bytes a batch or page may have.
  var bytes = Int.max
}

extension SyncSession {
  /// Whether the batch under way has something urgent in it, or such waits behind it.
  func isUrgent(_ least: Int) throws(TidemarkError) -> Bool {
    for set in [sequencesInFlight, progress.again.subtracting(held)] {
      for sequence in set.sequences {
        if let change = try log.change(at: sequence), change.attributes.priority >= least {
          return true
        }
      }
    }
    try urgent.lookThrough(self, progress)
    for change in urgent.inOrder where isPending(change) {
      if change.attributes.priority >= least { return true }
    }
    return least <= 0 && progress.frontier < log.head
  }

  var batchBytes: Int { min(limits.bytes, gate.bytes) }
}

extension SyncSession.Call {
  /// The bytes of the call that a budget counts.
  /// - Parameter charged: the batch that was counted last: when it goes again, large values of it
  ///   go on from where they were.
  func countedBytes(after charged: BatchID?) -> Int {
    if case .attach(let request) = self { return request.bytes.count }
    guard case .push(let request) = self else { return 0 }
    let goesAgain = request.batchID == charged
    return request.changes.reduce(0) { sum, change in
      let isLarge = change.content.value.count > BlobID.leastLength
      return sum + change.key.count + (goesAgain && isLarge ? 0 : change.content.countedBytes)
    }
  }
}

extension SyncSession.Answer {
  /// The bytes of the answer that a budget counts.
  var countedBytes: Int {
    switch self {
    case .pull, .values: entries.reduce(0) { $0 + $1.key.count + $1.content.countedBytes }
    case .fetch(let answer): answer.bytes?.count ?? 0
    case .hello, .push, .digest, .attach: 0
    }
  }
}

extension SyncContent {
  fileprivate var countedBytes: Int {
    64 + value.count + (hash?.count ?? 0) + labels.reduce(0) { $0 + $1.bytes.count }
  }
}
