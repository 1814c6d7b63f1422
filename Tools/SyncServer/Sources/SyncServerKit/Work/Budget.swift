/// Something of which there is only so much.
final class Budget: Sendable {
  private let left: PosixMutex<Int>

  init(_ amount: Int) { left = PosixMutex(amount) }

  /// Takes a part, if there is as much.
  func take(_ amount: Int) -> Bool {
    left.withLock { left in
      guard amount <= left else { return false }
      left -= amount
      return true
    }
  }

  /// Gives a part back.
  func giveBack(_ amount: Int) { left.withLock { $0 += amount } }
}
