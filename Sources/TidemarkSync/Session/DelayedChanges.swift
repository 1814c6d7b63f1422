internal import TidemarkEngine
internal import TidemarkSyncProtocol

/// Changes that the peer asked to have resent later (`Retry-After`), while others are sent. The
/// times are in memory only: a new session sends them at once.
struct DelayedChanges {
  private static let most = 65_536

  /// When each may be sent again, in monotonic nanoseconds; a fault is a failure of the peer on it.
  private var ends: [UInt64: (time: UInt64, isFault: Bool)] = [:]
  var lastFailure: String?
  /// The time of the last ``sequences(of:at:)``; ``first(of:)`` uses it, so that both see the same
  /// changes as delayed.
  private var lookedAt: UInt64 = 0

  mutating func delay(_ sequence: UInt64, until end: UInt64, isFault: Bool) {
    if ends.count >= Self.most { ends = [:] }
    ends[sequence] = (end, isFault)
  }

  /// The peer's last failure, if a pending change is delayed for one; else nil.
  func failure(of pending: SequenceSet) -> String? {
    ends.contains { $0.value.isFault && pending.contains($0.key) } ? lastFailure : nil
  }

  /// Ends the delays after failures of the peer, since the user asked for a sync.
  mutating func forgetFaults() { ends = ends.filter { !$0.value.isFault } }

  /// The pending changes that are still delayed, and those on which the peer has failed: the latter
  /// are sent when nothing else is, so that they hold up no others.
  mutating func sequences(
    of pending: SequenceSet, at now: UInt64
  ) -> (rest: SequenceSet, failed: SequenceSet) {
    guard !ends.isEmpty else { return (SequenceSet(), SequenceSet()) }
    lookedAt = now
    ends = ends.filter { $0.value.time > now || $0.value.isFault && pending.contains($0.key) }
    var (rest, failed) = (SequenceSet(), SequenceSet())
    for (sequence, end) in ends.sorted(by: { $0.key < $1.key }) {
      if end.time > now { rest.insert(sequence) }
      if end.isFault { failed.insert(sequence) }
    }
    return (rest, failed)
  }

  /// The earliest time at which a pending change may be sent that was delayed at the last look.
  func first(of pending: SequenceSet) -> UInt64? {
    ends.lazy.filter { [lookedAt] in $0.value.time > lookedAt && pending.contains($0.key) }
      .map(\.value.time).min()
  }
}

extension SyncSession {
  private static let longestDelaySeconds: UInt64 = 86_400

  /// Delays changes of the batch in flight as the peer's answer says.
  func delay(_ answer: PushAnswer) {
    guard !answer.later.isEmpty, let batch = batchInFlight, batch.batchID == answer.mark.batchID
    else { return }
    let now = log.monotonicNanoseconds
    delayed.lastFailure = answer.failure ?? delayed.lastFailure
    for (index, pause) in answer.later where batch.items.indices.contains(index) {
      let seconds = min(max(1, pause.wholeSeconds), Self.longestDelaySeconds)
      delayed.delay(
        batch.items[index].sequence, until: now &+ seconds * 1_000_000_000,
        isFault: answer.faulty.contains(index))
    }
  }

  /// The time until a delayed change may be sent; nil when none is delayed.
  var timeToRetry: Duration? {
    let now = log.monotonicNanoseconds
    return delayed.first(of: outbox.pending).map {
      .nanoseconds(Int64(clamping: $0 - min($0, now)))
    }
  }
}
