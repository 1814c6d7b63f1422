internal import TidemarkEngine
internal import TidemarkSyncProtocol

/// Changes that a peer has put back for a while: they are not sent before that is over, and hold up
/// nobody. Forgotten with the session, after which they are tried at once.
struct DelayedChanges {
  private static let most = 65_536

  /// When each may be sent again, in nanoseconds of the monotonic clock.
  private var ends: [UInt64: (time: UInt64, isFault: Bool)] = [:]
  var lastFailure: String?
  /// When the changes that wait for a retry were listed last; ``first(of:)`` goes by that time, so
  /// that both speak of the same changes.
  private var lookedAt: UInt64 = 0

  mutating func delay(_ sequence: UInt64, until end: UInt64, isFault: Bool) {
    if ends.count >= Self.most { ends = [:] }
    ends[sequence] = (end, isFault)
  }

  /// The last failure of the peer on a change that is pending and rests for that; nil for none.
  func failure(of pending: SequenceSet) -> String? {
    ends.contains { $0.value.isFault && pending.contains($0.key) } ? lastFailure : nil
  }

  /// Lets changes go at once on which the peer has failed: somebody wants to know how it is now.
  mutating func forgetFaults() { ends = ends.filter { !$0.value.isFault } }

  /// The changes that still rest, and those on which the peer has failed, as far as they are
  /// pending: these go when nothing else does, so that many of them hold up nobody.
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

  /// When the first of those that are pending may go, as far as they rested at the last look.
  func first(of pending: SequenceSet) -> UInt64? {
    ends.lazy.filter { [lookedAt] in $0.value.time > lookedAt && pending.contains($0.key) }
      .map(\.value.time).min()
  }
}

extension SyncSession {
  private static let longestDelaySeconds: UInt64 = 86_400

  /// Lets changes of the batch under way rest for as long as the peer has said.
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

  /// The peer's failure on a change that therefore rests; nil for none.
  var delayFailure: String? { delayed.failure(of: outbox.pending) }

  /// How long until a change goes that the peer has put back for a while; nil when none rests.
  var timeToRetry: Duration? {
    let now = log.monotonicNanoseconds
    return delayed.first(of: outbox.pending).map {
      .nanoseconds(Int64(clamping: $0 - min($0, now)))
    }
  }
}
