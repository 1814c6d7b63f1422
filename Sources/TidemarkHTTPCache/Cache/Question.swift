internal import Tidemark
internal import TidemarkEngine

/// A question to a server, of all who ask the same at a time. It goes on until it is answered, or
/// until all of them have left, whoever was the first.
///
/// The first one reads the answer as it comes; others wait for what becomes of it.
final class Question: Sendable {
  /// The news for those who wait.
  enum Lesson: Sendable {
    /// The stored response is right now.
    case kept
    /// The server has failed, with a status; 0 where it cannot be reached.
    case failed(Int)
    /// The answer is the first one's alone: each asks for itself.
    case apart
    /// The first one is slow: they ask together, without it.
    case again
  }

  /// The end for the first one.
  enum End: Sendable {
    /// The answer has come through the pipe.
    case passed
    /// The stored response serves in place of an answer.
    case stored(Reply)
    /// Nobody was asked: what is stored by now may do.
    case needless
  }

  /// The stored response as an answer.
  struct Reply: Sendable {
    var found: ResponseStore.Found
    var detail = ""
    /// The outcome of the request to the server; nil where there was none.
    var forwarded: String?
    /// The cookies of the server's answer, which are not stored.
    var setCookies: [String] = []
  }

  private struct State {
    /// The number of readers that still wait for the answer.
    var askers = 1
    var exchange: Task<Void, any Error>?
    var isCalledOff = false
    var lesson: Result<Lesson, any Error>?
    var end: Result<End, any Error>?
  }

  /// The state before it was asked; nil for a question whose answer nobody keeps.
  let stamp: ResponseStore.Stamp?
  private let pipe = AnswerPipe()
  private let state = Lock(State())
  private let change = Signal()

  init(_ stamp: ResponseStore.Stamp?) { self.stamp = stamp }

  // MARK: Asking

  /// Runs the exchange with the server, which is called off when all have left.
  func run(_ exchange: @escaping @Sendable () async throws -> Void) async throws {
    let task = Task { try await exchange() }
    let isCalledOff = state.withLock { state in
      state.exchange = task
      return state.isCalledOff
    }
    if isCalledOff { task.cancel() }
    try await task.value
  }

  /// Hands a part of the answer to the first one. Others do not wait while that one is slow.
  func give(_ part: AnswerPipe.Part) { pipe.give(part) { release(.again) } }

  /// Says that the first one does not read, or reads no more.
  func endReading() { pipe.close() }

  /// Says that those who wait need not wait any longer.
  func release(_ lesson: Lesson) {
    state.withLock { state in
      if state.lesson == nil { state.lesson = .success(lesson) }
    }
    change.raise()
  }

  /// Says what became of it.
  func finish(_ end: Result<(End, Lesson), any Error>) {
    state.withLock { state in
      // The reader may have missed something that was called off.
      state.end = state.isCalledOff ? .failure(CancellationError()) : end.map(\.0)
      if state.lesson == nil { state.lesson = end.map(\.1) }
    }
    change.raise()
    pipe.end()
  }

  func callOff() {
    let exchange = state.withLock { state in
      state.isCalledOff = true
      return state.exchange
    }
    pipe.close()
    exchange?.cancel()
  }

  // MARK: Waiting

  /// Joins those who wait.
  /// - Returns: false where nothing is to be waited for; else the caller must ``leave()``.
  func join() -> Bool {
    state.withLock { state in
      guard state.lesson == nil, !state.isCalledOff else { return false }
      state.askers += 1
      return true
    }
  }

  func leave() {
    let isLast = state.withLock { state in
      state.askers -= 1
      return state.askers == 0 && state.end == nil
    }
    if isLast { callOff() }
  }

  /// Waits for what those learn who have joined.
  /// - Throws: what the exchange has thrown; `CancellationError`.
  func lesson() async throws -> Lesson {
    try await change.first { state.withLock { $0.lesson } }.get()
  }

  /// Hands the first one what comes.
  /// - Throws: what the exchange and `body` have thrown; `CancellationError`.
  func read(_ body: (AnswerPipe.Part) async throws -> Void) async throws -> End {
    defer { endReading() }
    while case let parts = try await pipe.next(), !parts.isEmpty {
      for part in parts { try await body(part) }
    }
    return try state.withLock { $0.end }?.get() ?? .passed
  }
}

/// The questions that others may join.
final class Questions: Sendable {
  private let open = Lock<[String: Question]>([:])

  /// Joins the question of a kind, or begins one.
  /// - Parameters:
  ///   - isCurrent: whether nothing was said since it was asked.
  ///   - begin: makes a question.
  func enter(
    _ key: String, isCurrent: (Question) -> Bool, begin: () -> Question
  ) -> (question: Question, isFirst: Bool) {
    open.withLock { open in
      if let question = open[key], isCurrent(question), question.join() {
        return (question, false)
      }
      let question = begin()
      open[key] = question
      return (question, true)
    }
  }

  /// Lets nobody join a question any more.
  func close(_ key: String, _ question: Question) {
    open.withLock { if $0[key] === question { $0[key] = nil } }
  }

  var all: [Question] { open.withLock { Array($0.values) } }
}
