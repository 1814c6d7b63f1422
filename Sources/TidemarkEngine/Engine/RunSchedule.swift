/// The run of the index that is written or due, as those see it who hold `writer`.
struct RunSchedule {
  /// Whether somebody is writing one: there is one at a time.
  private(set) var isWriting = false
  /// Bytes of log written since the last one was begun.
  private var bytesSinceLast = 0
  /// Whether runs may have been left to be merged by who has the time.
  private var mayBeUneven = true

  mutating func begin() {
    isWriting = true
    bytesSinceLast = 0
  }

  mutating func end() { isWriting = false }

  mutating func noteWritten(_ bytes: Int) { bytesSinceLast += bytes }

  func isDue(every bytes: Int) -> Bool { !isWriting && bytesSinceLast >= bytes }

  /// Whether to look for runs that were left to be merged: once in an opening.
  mutating func takeTurnToEven() -> Bool {
    guard mayBeUneven, !isWriting else { return false }
    mayBeUneven = false
    return true
  }
}
