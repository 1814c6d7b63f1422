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
  /// Whether a change of at least this priority is in flight, or waits for the batch that is.
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
  /// The bytes of a call that a budget counts.
  /// - Parameter charged: the batch that was counted last: when it goes again, large values of it
  ///   go on from where they were.
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

/// Which way entries go.
public enum SyncDirection: String, Sendable, Hashable, CaseIterable {
  /// Both ways.
  case both
  /// Own entries are sent. What others have appended is not taken, but for what conflicts with
  /// them.
  case push
  /// Entries that others have appended are taken. Nothing is sent, but for a batch that was under
  /// way.
  case pull

  /// Whether own entries are sent.
  public var pushes: Bool { self != .pull }
  /// Whether what others have appended is taken.
  public var pulls: Bool { self != .push }
}

extension SyncSession {
  /// Asks for what stands behind the cursor. Where others' entries are not taken, it does for what
  /// this store has appended itself: own deletes in the feed are kept here until the cursor has
  /// passed them.
  /// - Returns: nil where the cursor is as far as it gets that way.
  func nextPull(_ range: FeedRange) throws(TidemarkError) -> PullRequest? {
    let cursor = progress.cursor.offset
    guard cursor < range.head,
      reads || capabilities.hasMarkBehindBatch && ownAskedAt != cursor
    else { return nil }
    if !reads { ownAskedAt = cursor }
    var request = try pullRequest()
    request.ownOnly = !reads
    return request
  }

  /// Moves the frontier over entries of the feed, as building batches does: a session that only
  /// pulls would look through them for pending changes again and again.
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
