/// Something of which there is only so much.
final class Budget: Sendable {
  /// A part that is taken, until it is let go.
  final class Part: Sendable {
    private let amount: Int
    private let budget: Budget

    fileprivate init(_ amount: Int, of budget: Budget) {
      self.amount = amount
      self.budget = budget
    }

    deinit { budget.left.withLock { $0 += amount } }
  }

  private let amount: Int
  private let left: PosixMutex<Int>

  init(_ amount: Int) {
    self.amount = amount
    left = PosixMutex(amount)
  }

  /// Takes a part, if there is as much.
  /// - Parameter mayExceed: whether a single part may be more than all together.
  func take(_ amount: Int, mayExceed: Bool = false) -> Part? {
    let isTaken = left.withLock { left in
      guard amount <= left || (mayExceed && left == self.amount) else { return false }
      left -= amount
      return true
    }
    return isTaken ? Part(amount, of: self) : nil
  }
}
