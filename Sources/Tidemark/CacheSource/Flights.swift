internal import TidemarkEngine

/// The questions to sources that are under way, one for a key however many readers wait for it.
///
/// A question is called off when the last of its readers goes; what comes of it then is not kept.
final class Flights: Sendable {
  /// The answer of a source, with values as bytes: readers may have types of their own.
  enum Answer: Sendable {
    /// Kept, unless it does not fit into the cache; nil where the value that is there was right.
    case value(Answered?)
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
  }

  private struct Flight {
    var id: UInt64
    var task: Task<Void, Never>?
    var readers: [UInt64: CheckedContinuation<Answer, any Error>] = [:]
    /// Whether it goes on without readers.
    var isDetached = false
  }

  /// When a source has said that there is nothing, and until when that holds, in milliseconds.
  private struct Absence {
    var start: Int64
    var end: Int64

    /// On a clock that was set back it holds for twice its time at most, as a value is valid.
    func holds(at now: Int64) -> Bool {
      guard now < end else { return false }
      let (ahead, overflow) = start.subtractingReportingOverflow(now)
      let age = end.subtractingReportingOverflow(start)
      return !overflow && (age.overflow || ahead <= age.partialValue)
    }
  }

  private struct State {
    var flights: [[UInt8]: Flight] = [:]
    var nextID: UInt64 = 1
    /// Keys of which sources have said that there is nothing.
    var absences: [[UInt8]: Absence] = [:]
  }

  /// Most absences that are remembered.
  static let mostAbsences = 4_096

  private let state = Lock(State())

  /// How many questions are under way.
  var count: Int { state.withLock { $0.flights.count } }

  /// How many readers wait for an answer.
  var readers: Int {
    state.withLock { $0.flights.values.reduce(0) { $0 + $1.readers.count } }
  }

  /// Most questions under way beside which one is asked for which nobody waits.
  static let mostBesideRefreshes = 256

  /// Waits for the answer to a question, which is asked unless somebody has done so.
  /// - Parameters:
  ///   - joins: whether a question that is under way will do; else it is called off, and its
  ///     readers wait for the new one.
  ///   - ask: asks; is given the question's number, see ``isCurrent(_:of:)``.
  /// - Throws: what the source throws; `CancellationError` once the reader's task is cancelled.
  func answer(
    _ key: [UInt8], joins: Bool = true,
    _ ask: @escaping @Sendable (UInt64) async throws -> Answer
  ) async throws -> (Answer, isShared: Bool) {
    let reader = state.withLock { state in
      defer { state.nextID += 1 }
      return state.nextID
    }
    let isShared = Lock(false)
    let answer = try await withTaskCancellationHandler {
      try await withCheckedThrowingContinuation {
        (continuation: CheckedContinuation<Answer, any Error>) in
        let (hasJoined, former) = state.withLock { state -> (Bool?, Task<Void, Never>?) in
          // One that was cancelled before it came to wait would never be told again.
          guard !Task.isCancelled else { return (nil, nil) }
          let former = state.flights[key]
          var flight = joins ? former ?? begin(key, &state, ask) : begin(key, &state, ask)
          if !joins, let former {
            flight.readers = former.readers
            flight.isDetached = former.isDetached
          }
          flight.readers[reader] = continuation
          state.flights[key] = flight
          return (joins && former != nil, joins ? nil : former?.task)
        }
        former?.cancel()
        guard let hasJoined else { return continuation.resume(throwing: CancellationError()) }
        isShared.withLock { $0 = hasJoined }
      }
    } onCancel: {
      leave(key, reader)
    }
    return (answer, isShared.withLock { $0 })
  }

  /// Asks a question for which nobody waits, unless it is under way, or so many are that this one
  /// is left to a later reader.
  func refresh(
    _ key: [UInt8], _ ask: @escaping @Sendable (UInt64) async throws -> Answer
  ) {
    state.withLock { state in
      guard state.flights[key] != nil || state.flights.count < Self.mostBesideRefreshes else {
        return
      }
      var flight = state.flights[key] ?? begin(key, &state, ask)
      flight.isDetached = true
      state.flights[key] = flight
    }
  }

  private func begin(
    _ key: [UInt8], _ state: inout State,
    _ ask: @escaping @Sendable (UInt64) async throws -> Answer
  ) -> Flight {
    let id = state.nextID
    state.nextID += 1
    let task = Task { [self] in
      let result: Result<Answer, any Error>
      do { result = .success(try await ask(id)) } catch { result = .failure(error) }
      land(key, id, result)
    }
    return Flight(id: id, task: task)
  }

  private func land(_ key: [UInt8], _ id: UInt64, _ result: Result<Answer, any Error>) {
    let flight = state.withLock { state -> Flight? in
      guard state.flights[key]?.id == id else { return nil }
      return state.flights.removeValue(forKey: key)
    }
    for continuation in (flight?.readers ?? [:]).values { continuation.resume(with: result) }
  }

  private func leave(_ key: [UInt8], _ reader: UInt64) {
    let (continuation, task) = state.withLock { state in
      guard let continuation = state.flights[key]?.readers.removeValue(forKey: reader) else {
        return (CheckedContinuation<Answer, any Error>?.none, Task<Void, Never>?.none)
      }
      guard let flight = state.flights[key], flight.readers.isEmpty, !flight.isDetached else {
        return (continuation, nil)
      }
      state.flights[key] = nil
      return (continuation, flight.task)
    }
    task?.cancel()
    continuation?.resume(throwing: CancellationError())
  }

  /// Whether a question was not called off, so that its answer may be kept.
  func isCurrent(_ id: UInt64, of key: [UInt8]) -> Bool {
    state.withLock { $0.flights[key]?.id == id }
  }

  /// Calls all questions off.
  func cancelAll() {
    let flights = state.withLock { state in
      defer { state.flights = [:] }
      return state.flights.values.map { $0 }
    }
    for flight in flights {
      flight.task?.cancel()
      for continuation in flight.readers.values {
        continuation.resume(throwing: CancellationError())
      }
    }
  }

  // MARK: Absences

  /// Whether a source has said of a key that there is nothing, and need not be asked again yet.
  func isAbsent(_ key: [UInt8], at now: Int64) -> Bool {
    state.withLock { state in
      guard let absence = state.absences[key] else { return false }
      if absence.holds(at: now) { return true }
      state.absences[key] = nil
      return false
    }
  }

  /// Remembers that there is nothing until a time; a time that has passed forgets it.
  func noteAbsence(_ key: [UInt8], until end: Int64, now: Int64) {
    state.withLock { state in
      guard end > now else {
        state.absences[key] = nil
        return
      }
      if state.absences.count >= Self.mostAbsences {
        state.absences = state.absences.filter { $0.value.holds(at: now) }
      }
      // A source that makes names up must not fill the memory.
      guard state.absences.count < Self.mostAbsences else { return }
      state.absences[key] = Absence(start: now, end: end)
    }
  }
}
