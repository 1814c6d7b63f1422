internal import Synchronization
internal import TidemarkSyncServer

/// A long poll that waits, and gets its answer from the task that reads for woken ones.
final class PullWaiter: Sendable {
  /// The end of a wait.
  typealias Outcome = Result<Reply, Problem>

  private enum State {
    case waiting(CheckedContinuation<Outcome?, Never>?)
    case over(Outcome?)
  }

  let question: VainPull.Question
  let database: DatabaseName
  private let state = Mutex(State.waiting(nil))
  /// The position up to which nothing was found, and the number of the database's last change then.
  private let looked: Mutex<(through: Position, change: UInt64)>

  init(
    _ question: VainPull.Question, _ database: DatabaseName, lookedThrough: Position,
    at change: UInt64
  ) {
    self.question = question
    self.database = database
    looked = Mutex((lookedThrough, change))
  }

  var caller: String { question.caller }
  var lookedThrough: Position { looked.withLock { $0.through } }
  var lastLook: UInt64 { looked.withLock { $0.change } }

  /// Notes that nothing was found up to a position.
  func note(lookedThrough: Position, at change: UInt64) {
    looked.withLock { $0 = (lookedThrough, change) }
  }

  /// Whether it has an outcome, and does not wait any more.
  var isOver: Bool { state.withLock { if case .over = $0 { true } else { false } } }

  /// Ends the wait with an empty answer.
  func end() { finish(nil) }

  /// Ends the wait with an outcome; only the first one counts.
  /// - Parameter outcome: nil for the empty answer.
  func finish(_ outcome: Outcome?) {
    let continuation = state.withLock { state -> CheckedContinuation<Outcome?, Never>? in
      guard case .waiting(let continuation) = state else { return nil }
      state = .over(outcome)
      return continuation
    }
    continuation?.resume(returning: outcome)
  }

  /// Waits for the outcome; nil for the empty answer. Must be called only once.
  func outcome() async -> Outcome? {
    await withCheckedContinuation { continuation in
      let known = state.withLock { state -> Outcome?? in
        switch state {
        case .over(let outcome): return .some(outcome)
        case .waiting:
          state = .waiting(continuation)
          return nil
        }
      }
      if let known { continuation.resume(returning: known) }
    }
  }
}

/// A long poll that found nothing. When a client repeats it, it waits without a read of the feed.
struct VainPull: Sendable {
  /// What identifies a repeated pull: it gets the same answer while the database is unchanged.
  struct Question: Sendable, Hashable {
    var caller: String
    var access: SyncAccess
    var coding: Coding
    var request: PullRequest
  }

  var question: Question
  /// The empty answer.
  var reply: Reply
  var lookedThrough: Position
  /// When it was answered.
  var time = ContinuousClock.now
}
