internal import TidemarkEngine

extension SyncSession {
  /// Whether an own change waits for a verdict, or for the user, by its sequence.
  package func isPending(_ sequence: UInt64) -> Bool {
    if progress.waiting[sequence] != nil || progress.again.contains(sequence) { return true }
    if sequencesInFlight.contains(sequence) { return true }
    return sequence > progress.frontier && !progress.ahead.contains(sequence)
  }
}
