internal import Tidemark
internal import TidemarkEngine
internal import TidemarkSyncProtocol

/// The calls that a ``SyncBudget`` allows a session.
package struct SyncGate: Sendable, Hashable {
  /// Whether only hellos and the calls that send entries of `leastPriority` and above are allowed.
  var isNarrow = false
  /// If nil, a narrow gate allows no entries.
  var leastPriority: Int?
  /// About how many bytes a batch or page may have.
  var bytes = Int.max
}

extension SyncSession {
  /// Whether a change of at least this priority is in flight, or waits for the batch in flight.
  func isUrgent(_ least: Int) throws(TidemarkError) -> Bool {
    for sequence in sequencesInFlight.sequences {
      if let change = try log.change(at: sequence), change.attributes.priority >= least {
        return true
      }
    }
    try deferred.findUrgent(outbox, in: log)
    if deferred.urgent.contains(where: { $0.priority >= least && isPending($0.sequence) }) {
      return true
    }
    let unsent = outbox.unsent(through: log.head)
    return least <= 0 && !unsent.subtracting(deferred.blocked).subtracting(deferred.low).isEmpty
  }

  var batchBytes: Int { min(limits.bytes, gate.bytes) }
}

extension WireMessage {
  /// The bytes of a request that a budget counts.
  /// - Parameter charged: the batch counted last: if it is sent again, uploads of its large values
  ///   are resumed, so they are not counted again.
  func sentBytes(after charged: BatchID?) -> Int {
    if case .attachRequest(let request) = self { return request.bytes.count }
    guard case .pushRequest(let request) = self else { return 0 }
    let goesAgain = request.batchID == charged
    return request.changes.reduce(0) { sum, change in
      let isLarge = change.content.value.count > SyncContent.mostInlineBytes
      return sum + change.key.count + (goesAgain && isLarge ? 0 : change.content.countedBytes)
    }
  }

  /// The bytes of an answer that a budget counts.
  var takenBytes: Int {
    switch self {
    case .pullAnswer, .valuesAnswer:
      entries.reduce(0) { $0 + $1.key.count + $1.content.countedBytes }
    case .fetchAnswer(let answer): answer.bytes?.count ?? 0
    default: 0
    }
  }
}

extension SyncContent {
  fileprivate var countedBytes: Int {
    64 + value.count + (hash?.count ?? 0) + labels.reduce(0) { $0 + $1.bytes.count }
  }
}

/// Whether a replicator pushes, pulls or does both.
public enum SyncDirection: String, Sendable, Hashable, CaseIterable {
  /// The replicator pushes this store's entries and pulls those of other replicas.
  case both
  /// The replicator pushes this store's entries. It pulls an entry of another replica only if that
  /// is in conflict with an entry of this store.
  case push
  /// The replicator pulls entries of other replicas. It pushes nothing, except a batch that was in
  /// flight.
  case pull

  /// Whether the replicator pushes this store's entries: true for ``both`` and ``push``.
  public var pushes: Bool { self != .pull }
  /// Whether the replicator pulls entries of other replicas: true for ``both`` and ``pull``.
  public var pulls: Bool { self != .push }
}

extension SyncSession {
  /// The request for the entries after the cursor. If the session only pushes, it asks for its own
  /// entries alone, to move the cursor: compaction keeps own deletes that the cursor has not
  /// passed.
  /// - Returns: nil if a pull would not move the cursor.
  func nextPull(_ range: FeedRange) throws(TidemarkError) -> PullRequest? {
    let cursor = progress.cursor.offset
    guard cursor < range.head,
      reads || capabilities.hasMarkBehindBatch && ownPullCursor != cursor
    else { return nil }
    if !reads { ownPullCursor = cursor }
    var request = try pullRequest()
    request.ownOnly = !reads
    return request
  }

  /// Moves the outbox's frontier past pulled entries, as building batches does: a session that only
  /// pulls would otherwise search them for pending changes at every look.
  func passForeign() throws {
    try update { tx in
      for range in outbox.unsent(through: log.head).ranges {
        var reached = range.upperBound
        var cursor = log.entries(from: range.lowerBound, through: range.upperBound)
        while let entry = try cursor.next(), reached == range.upperBound {
          if entry.head.kind != .touch, try entry.attributes().origin == nil {
            reached = entry.sequence - 1
          }
        }
        if reached >= range.lowerBound { tx.outbox.remove(range.lowerBound...reached) }
        if reached < range.upperBound { return }
      }
    }
  }
}
