internal import Synchronization
internal import TidemarkSyncServer

/// A pull that waits until whoever is told of news answers it.
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
  /// Up to here nothing was found, and the number of the last change when that was.
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

  /// Nothing was found up to a position.
  func note(lookedThrough: Position, at change: UInt64) {
    looked.withLock { $0 = (lookedThrough, change) }
  }

  /// Whether nobody waits for an answer any more.
  var isOver: Bool { state.withLock { if case .over = $0 { true } else { false } } }

  /// Lets it wait no more, and be answered with nothing.
  func end() { finish(nil) }

  /// Answers it; what comes first counts.
  /// - Parameter outcome: nil where there is nothing.
  func finish(_ outcome: Outcome?) {
    let continuation = state.withLock { state -> CheckedContinuation<Outcome?, Never>? in
      guard case .waiting(let continuation) = state else { return nil }
      state = .over(outcome)
      return continuation
    }
    continuation?.resume(returning: outcome)
  }

  /// Returns its answer; nil where there is nothing. For one caller.
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

/// A pull that has waited in vain.
struct VainPull: Sendable {
  /// The same question gets the same answer as long as nothing has changed.
  struct Question: Sendable, Hashable {
    var caller: String
    var access: SyncAccess
    var coding: Coding
    var request: PullRequest
  }

  var question: Question
  /// Says that there is nothing.
  var reply: Reply
  var lookedThrough: Position
  /// When it was answered.
  var time = ContinuousClock.now
}
