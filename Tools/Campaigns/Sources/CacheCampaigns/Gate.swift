/// Questions that wait for the trial to answer them.
actor Gate<Question: Sendable, Answer: Sendable> {
  /// A question that waits.
  struct Waiting: Sendable {
    let id: Int
    let question: Question
  }

  private var next = 0
  private var waiting: [(Waiting, CheckedContinuation<Answer, any Error>)] = []
  /// Whether whatever is asked from now on fails at once.
  private var isShut = false

  /// The questions that wait, the oldest first.
  var open: [Waiting] { waiting.map(\.0) }
  /// How many have been asked so far.
  var asked: Int { next }

  /// The number of readers that have returned or thrown.
  private(set) var finished = 0

  func finish() { finished += 1 }

  /// Waits for ``answer(_:_:)``, or until the task is cancelled.
  func ask(_ question: Question) async throws -> Answer {
    let id = next
    next += 1
    if isShut { throw CancellationError() }
    return try await withTaskCancellationHandler {
      try await withCheckedThrowingContinuation { continuation in
        if Task.isCancelled { return continuation.resume(throwing: CancellationError()) }
        waiting.append((Waiting(id: id, question: question), continuation))
      }
    } onCancel: {
      Task { await self.answer(id, .failure(CancellationError())) }
    }
  }

  /// Answers a question, unless it waits no more.
  func answer(_ id: Int, _ answer: Result<Answer, any Error>) {
    guard let index = waiting.firstIndex(where: { $0.0.id == id }) else { return }
    waiting.remove(at: index).1.resume(with: answer)
  }

  /// Lets all questions fail, also those to come.
  func shut() {
    isShut = true
    for (_, continuation) in waiting { continuation.resume(throwing: CancellationError()) }
    waiting = []
  }
}
