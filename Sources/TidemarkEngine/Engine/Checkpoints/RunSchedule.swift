/// Whether a sorted run of the index is being written, and when the next is due.
/// ``Checkpointer`` owns it, behind a monitor.
struct RunSchedule {
  /// Whether somebody has claimed the turn: to write a run, or to keep others from that.
  private(set) var isWriting = false
  /// Bytes of log that had been written when the last run was begun.
  private var loggedBefore = 0
  /// Whether there may be runs that should be merged: a run written in haste merges few.
  var mayBeUneven = true

  /// Claims the turn to write a run; ``end()`` gives it back.
  /// - Returns: false when somebody else has the turn.
  mutating func begin(at logged: Int) -> Bool {
    guard claim() else { return false }
    loggedBefore = logged
    return true
  }

  /// Claims the turn without writing a run, so that none is written.
  mutating func claim() -> Bool {
    guard !isWriting else { return false }
    isWriting = true
    return true
  }

  mutating func end() { isWriting = false }

  func isDue(at logged: Int, every bytes: Int) -> Bool {
    !isWriting && logged - loggedBefore >= bytes
  }

  /// Whether to look for runs to merge: once in an opening.
  mutating func takeTurnToEven() -> Bool {
    guard mayBeUneven, !isWriting else { return false }
    mayBeUneven = false
    return true
  }
}
