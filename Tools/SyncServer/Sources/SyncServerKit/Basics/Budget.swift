/// A bounded amount, such as of memory, of which calls take parts.
final class Budget: Sendable {
  /// A part of the amount, which is given back when this is released.
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

  /// Takes an amount; nil, with nothing taken, if there is less.
  /// - Parameter mayExceed: whether, without others, one amount may exceed the whole.
  func take(_ amount: Int, mayExceed: Bool = false) -> Part? {
    let isTaken = left.withLock { left in
      guard amount <= left || (mayExceed && left == self.amount) else { return false }
      left -= amount
      return true
    }
    return isTaken ? Part(amount, of: self) : nil
  }
}
