import Foundation

/// A number that threads count up.
final class Counter: @unchecked Sendable {
  private let lock = NSLock()
  private var number = 0

  var count: Int { lock.withLock { number } }

  func add() { lock.withLock { number += 1 } }
}

/// Several threads that do the same.
enum Threads {
  private final class Failures: @unchecked Sendable {
    private let lock = NSLock()
    private var first: (any Error)?

    func note(_ error: any Error) { lock.withLock { first = first ?? error } }

    func check() throws { if let error = lock.withLock({ first }) { throw error } }
  }

  /// Returns when all have ended.
  /// - Throws: the first error of any.
  static func run(_ count: Int, _ body: @escaping @Sendable (Int) throws -> Void) throws {
    let group = DispatchGroup()
    let failures = Failures()
    for number in 0..<count {
      group.enter()
      Thread.detachNewThread {
        do { try body(number) } catch { failures.note(error) }
        group.leave()
      }
    }
    group.wait()
    try failures.check()
  }
}
