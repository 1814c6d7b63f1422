import TidemarkEngine

/// Counts calls from any thread.
final class Counter: Sendable {
  private let count = Lock(0)

  /// 1 for the first call.
  @discardableResult
  func next() -> Int {
    count.withLock { count in
      count += 1
      return count
    }
  }
}
