/// A bounded amount, such as of memory, that calls take and give back.
final class Budget: Sendable {
  private let left: PosixMutex<Int>

  init(_ amount: Int) { left = PosixMutex(amount) }

  /// Takes an amount; false, with nothing taken, if there is less.
  func take(_ amount: Int) -> Bool {
    left.withLock { left in
      guard amount <= left else { return false }
      left -= amount
      return true
    }
  }

  /// Gives an amount back.
  func giveBack(_ amount: Int) { left.withLock { $0 += amount } }
}
