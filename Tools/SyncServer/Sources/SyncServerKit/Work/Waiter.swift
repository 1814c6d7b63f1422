internal import Synchronization
internal import TidemarkSyncServer

/// A long poll that waits, and gets its answer from the task that reads for woken ones.
final class PullWaiter: Sendable {
  /// The end of a wait.
  typealias Outcome = Result<Reply, Problem>

  let question: VainPull.Question
  let database: DatabaseName
  private let outcomes: AsyncStream<Outcome?>
  private let continuation: AsyncStream<Outcome?>.Continuation
  private let hasEnded = Atomic(false)
  /// The position up to which nothing was found, and the number of the database's last change when
  /// it was looked for; nil where it must be looked for again.
  private let looked: Mutex<(through: FeedPosition, change: UInt64?)>

  init(
    _ question: VainPull.Question, _ database: DatabaseName, lookedThrough: FeedPosition,
    at change: UInt64
  ) {
    self.question = question
    self.database = database
    looked = Mutex((lookedThrough, change))
    (outcomes, continuation) = AsyncStream.makeStream()
  }

  var caller: String { question.caller }
  var lookedThrough: FeedPosition { looked.withLock { $0.through } }
  var lastLook: UInt64? { looked.withLock { $0.change } }

  /// Notes a look, which has found nothing up to a position.
  func note(lookedThrough: FeedPosition, at change: UInt64) {
    looked.withLock { $0 = (lookedThrough, change) }
  }

  func mustLook() { looked.withLock { $0.change = nil } }

  /// Whether it has an outcome, and does not wait any more.
  var isOver: Bool { hasEnded.load(ordering: .acquiring) }

  /// Ends the wait with an empty answer.
  func end() { finish(nil) }

  /// Ends the wait with an outcome; only the first one counts.
  /// - Parameter outcome: nil for the empty answer.
  func finish(_ outcome: Outcome?) {
    if !hasEnded.exchange(true, ordering: .acquiringAndReleasing) { continuation.yield(outcome) }
  }

  /// Waits for the outcome; nil for the empty answer. Must be called only once.
  func outcome() async -> Outcome? {
    for await outcome in outcomes { return outcome }
    return nil
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
  var lookedThrough: FeedPosition
  /// When it was answered.
  var time = ContinuousClock.now
}
