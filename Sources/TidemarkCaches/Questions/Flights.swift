internal import TidemarkEngine

/// The questions to sources that are under way, one for a key however many readers wait for it.
///
/// A question is called off when the last of its readers goes; what comes of it then is not kept.
final class Flights: Sendable {
  /// The answer of a source, with values as bytes: readers may have types of their own.
  enum Answer: Sendable {
    /// Kept, unless it does not fit into the cache; nil where the value that is there is right, or
    /// was written since.
    case value(Answered?)
    /// Not kept: something was said since the source was asked.
    case unkept(Answered)
    case gone
    /// Nobody was asked: an answer has come since the reader looked, who looks again.
    case overtaken
  }

  /// A value that came from a source.
  struct Answered: Sendable {
    var bytes: [UInt8]
    var labels: [EntryLabel]
    var hash: [UInt8]?
    var maxAge: Duration?
    var attachment: StagedAttachment?
  }

  /// Asks a source; see ``isUnderWay(_:)``.
  typealias Ask = @Sendable (CacheQuestion) async throws -> Answer

  private struct Flight {
    var question: CacheQuestion
    var task: Task<Void, Never>
    var readers: [UInt64: CheckedContinuation<Answer, any Error>] = [:]
    /// Whether it goes on without readers.
    var isDetached = false

    func end(_ result: Result<Answer, any Error>) {
      for reader in readers.values { reader.resume(with: result) }
    }
  }

  /// When a source has said that there is nothing, and until when that holds, in milliseconds.
  private struct Absence {
    var question: CacheQuestion
    var start: Int64
    var end: Int64

    func holds(at now: Int64) -> Bool {
      now.isCovered(from: start, until: end) && question.isCurrent(labels: [])
    }
  }

  private struct State {
    /// By key. Who asks now joins the last one, unless something was said since it was asked; the
    /// others are those that were overtaken before, and go on for their own readers.
    var flights: [[UInt8]: [Flight]] = [:]
    var nextReader: UInt64 = 1
    /// Keys of which sources have said that there is nothing.
    var absences: [[UInt8]: Absence] = [:]

    /// Takes a flight of a key out.
    mutating func take(_ key: [UInt8], where isTaken: (Flight) -> Bool) -> Flight? {
      guard let place = flights[key]?.firstIndex(where: isTaken) else { return nil }
      defer { if flights[key]?.isEmpty == true { flights[key] = nil } }
      return flights[key]?.remove(at: place)
    }
  }

  /// Most absences that are remembered.
  static let mostAbsences = 4_096

  private let questions: Questions
  private let state = Lock(State())

  init(_ questions: Questions) { self.questions = questions }

  /// How many questions are under way.
  var count: Int { state.withLock { $0.flights.values.reduce(0) { $0 + $1.count } } }

  /// How many readers wait for an answer.
  var readers: Int {
    state.withLock { $0.flights.values.joined().reduce(0) { $0 + $1.readers.count } }
  }

  /// Most questions under way beside which one is asked for which nobody waits.
  static let mostBesideRefreshes = 256
  /// The same for questions about the same key, which were overtaken.
  private static let mostOvertaken = 4

  /// Waits for the answer to a question, which is asked unless somebody has done so and nothing was
  /// said since.
  /// - Parameters:
  ///   - joins: whether a question that is under way will do; else it is called off, and its
  ///     readers wait for the new one.
  ///   - ask: asks.
  /// - Throws: what the source throws; `CancellationError` once the reader's task is cancelled.
  func answer(
    _ key: [UInt8], joins: Bool, _ ask: @escaping Ask
  ) async throws -> (Answer, isShared: Bool) {
    let reader = state.withLock { state in
      defer { state.nextReader += 1 }
      return state.nextReader
    }
    var isShared = false
    let answer = try await withTaskCancellationHandler {
      try await withCheckedThrowingContinuation {
        (continuation: CheckedContinuation<Answer, any Error>) in
        let former = state.withLock { state -> [Flight]? in
          // One that was cancelled before it came to wait would never be told again.
          guard !Task.isCancelled else { return nil }
          var flights = state.flights[key] ?? []
          isShared = joins && isCurrent(flights.last)
          // Nobody waits for the answer of an overtaken refresh, and it is not kept.
          let former = isShared ? [] : flights.filter { !joins || $0.readers.isEmpty }
          if !isShared {
            var flight = begin(key, ask)
            flight.isDetached = former.contains(where: \.isDetached)
            for other in former { flight.readers.merge(other.readers) { old, _ in old } }
            flights.removeAll { flight in former.contains { $0.question === flight.question } }
            flights.append(flight)
          }
          flights[flights.count - 1].readers[reader] = continuation
          state.flights[key] = flights
          return former
        }
        guard let former else { return continuation.resume(throwing: CancellationError()) }
        for flight in former { flight.task.cancel() }
      }
    } onCancel: {
      leave(key, reader)
    }
    return (answer, isShared)
  }

  /// Asks a question for which nobody waits, unless it is under way, or so many are that this one
  /// is left to a later reader.
  func refresh(_ key: [UInt8], _ ask: @escaping Ask) {
    state.withLock { state in
      var flights = state.flights[key] ?? []
      if !isCurrent(flights.last) {
        guard state.flights.count < Self.mostBesideRefreshes, flights.count < Self.mostOvertaken
        else { return }
        flights.append(begin(key, ask))
      }
      flights[flights.count - 1].isDetached = true
      state.flights[key] = flights
    }
  }

  /// Whether who asks now may wait for a question's answer.
  private func isCurrent(_ flight: Flight?) -> Bool {
    flight?.question.isCurrent(labels: nil) ?? false
  }

  private func begin(_ key: [UInt8], _ ask: @escaping Ask) -> Flight {
    let question = CacheQuestion(key, questions)
    let task = Task { [self] in
      let result: Result<Answer, any Error>
      do { result = .success(try await ask(question)) } catch { result = .failure(error) }
      state.withLock { $0.take(key) { $0.question === question } }?.end(result)
    }
    return Flight(question: question, task: task)
  }

  private func leave(_ key: [UInt8], _ reader: UInt64) {
    var continuation: CheckedContinuation<Answer, any Error>?
    let flight = state.withLock { state -> Flight? in
      guard let place = state.flights[key]?.firstIndex(where: { $0.readers[reader] != nil }) else {
        return nil
      }
      continuation = state.flights[key]?[place].readers.removeValue(forKey: reader)
      return state.take(key) { $0.readers.isEmpty && !$0.isDetached }
    }
    flight?.task.cancel()
    continuation?.resume(throwing: CancellationError())
  }

  /// Whether a question was not called off, so that its answer is wanted.
  func isUnderWay(_ question: CacheQuestion) -> Bool {
    state.withLock { $0.flights[question.key]?.contains { $0.question === question } ?? false }
  }

  /// Calls all questions off.
  func cancelAll() {
    let flights = state.withLock { state in
      defer { state.flights = [:] }
      return state.flights.values.flatMap { $0 }
    }
    for flight in flights {
      flight.task.cancel()
      flight.end(.failure(CancellationError()))
    }
  }

  // MARK: Absences

  /// Whether a source has said of a key that there is nothing, and need not be asked again yet.
  func isAbsent(_ key: [UInt8], at now: Int64) -> Bool {
    state.withLock { state in
      if state.absences[key]?.holds(at: now) == true { return true }
      state.absences[key] = nil
      return false
    }
  }

  /// Remembers that there is nothing until a time, or until something is said about the key; a time
  /// that has passed forgets it.
  func noteAbsence(_ question: CacheQuestion, until end: Int64, now: Int64) {
    state.withLock { state in
      state.absences[question.key] = nil
      if state.absences.count >= Self.mostAbsences {
        state.absences = state.absences.filter { $0.value.holds(at: now) }
      }
      // A source that makes names up must not fill the memory.
      guard end > now, state.absences.count < Self.mostAbsences else { return }
      state.absences[question.key] = Absence(question: question, start: now, end: end)
    }
  }
}
