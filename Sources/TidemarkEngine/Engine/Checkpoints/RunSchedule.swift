/// The run of the index that is written or due.
struct RunSchedule {
  /// Whether somebody is writing one: there is one at a time.
  private(set) var isWriting = false
  /// Bytes of log that had been written when the last one was begun.
  private var loggedBefore = 0
  /// Whether runs may have been left to be merged by who has the time.
  var mayBeUneven = true

  /// Claims the one place for who writes a run.
  /// - Parameter logged: bytes of log that were written so far.
  /// - Returns: false when somebody else has it.
  mutating func begin(at logged: Int) -> Bool {
    guard claim() else { return false }
    loggedBefore = logged
    return true
  }

  /// Claims that place, so that no run is written.
  mutating func claim() -> Bool {
    guard !isWriting else { return false }
    isWriting = true
    return true
  }

  mutating func end() { isWriting = false }

  func isDue(at logged: Int, every bytes: Int) -> Bool {
    !isWriting && logged - loggedBefore >= bytes
  }

  /// Whether to look for runs that were left to be merged: once in an opening.
  mutating func takeTurnToEven() -> Bool {
    guard mayBeUneven, !isWriting else { return false }
    mayBeUneven = false
    return true
  }
}
