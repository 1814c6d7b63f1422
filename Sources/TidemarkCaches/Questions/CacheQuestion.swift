internal import TidemarkEngine

/// A question to the source behind a cache, from when it is asked until it is let go.
///
/// Its answer is kept only as long as nothing was said meanwhile about the key, its labels or its
/// cache: a put, a touch, a mark, a delete, a removal, a switch to another generation. Making room
/// says nothing.
package final class CacheQuestion: Sendable {
  /// The key with the cache's prefix.
  let key: [UInt8]
  /// Tells it from all other questions of the store.
  let id: UInt64
  /// The statements that had been made when it was asked.
  private let start: UInt64
  /// See `Engine.takeovers`: nobody hears what another process says.
  private let takeovers: UInt64
  fileprivate let questions: Questions

  /// - Parameter key: with the cache's prefix.
  init(_ key: [UInt8], _ questions: Questions) {
    self.key = key
    self.questions = questions
    takeovers = questions.engine.takeovers
    (id, start) = questions.state.withLock { state in
      state.lastID += 1
      state.keys[key, default: (0, 0, 0)].questions += 1
      return (state.lastID, state.last)
    }
  }

  deinit {
    questions.state.withLock { state in
      state.keys[key]?.questions -= 1
      guard state.keys[key]?.questions == 0 else { return }
      state.keys[key] = nil
      if state.keys.isEmpty { state.wide = [] }
    }
  }

  /// Whether nothing was said since it was asked.
  /// - Parameter labels: those of the answer; nil while they are not known, when a statement about
  ///   any label counts.
  package func isCurrent(labels: [EntryLabel]?) -> Bool {
    guard takeovers == questions.engine.takeovers else { return false }
    let labels = labels?.map(\.bytes)
    return questions.state.withLock { state in
      guard state.keys[key]?.said ?? 0 <= start, state.forgotten <= start else { return false }
      return !state.wide.contains { statement in
        statement.number > start && key.starts(with: statement.prefix)
          && labels.map { statement.labels.matches($0) } ?? true
      }
    }
  }

  /// Whether no later question about the key has been answered.
  var isLast: Bool { questions.state.withLock { $0.keys[key]?.answered ?? 0 <= id } }

  /// A commit of its answer.
  package struct Answer: CommitCheck {
    let question: CacheQuestion
    var labels: [EntryLabel] = []
    /// Whether no later question about the key may have been answered.
    var mustBeLast = true
    /// Whether it is still wanted besides, by what stands in the cache.
    var isWanted: @Sendable () throws(TidemarkError) -> Bool = { true }

    /// - Throws: `conflict`. Callers hold the lock of all caches, as those do who say something.
    package func check() throws(TidemarkError) {
      if PlantedBug.isOn(.overtakenAnswerKept) { return }
      guard question.isCurrent(labels: labels), !mustBeLast || question.isLast, try isWanted()
      else {
        throw TidemarkError(
          .conflict, "something was said about the key since its source was asked; read it again")
      }
    }

    /// Takes note that it was committed, with the same lock held.
    package func noteCommit() {
      question.questions.state.withLock { state in
        let answered = state.keys[question.key]?.answered ?? 0
        state.keys[question.key]?.answered = max(answered, question.id)
      }
    }
  }
}

/// The questions that are open in a store, and what was said since the oldest of them.
///
/// Statements are numbered; a question holds as long as none about it has a higher number than the
/// last one before it.
final class Questions: Sendable {
  fileprivate struct Statement {
    var number: UInt64
    var prefix: [UInt8]
    var labels: LabelQuery
  }

  fileprivate struct State {
    var lastID: UInt64 = 0
    /// The number of the last statement.
    var last: UInt64 = 0
    /// The keys that are asked about: how often, the last statement about each, and the last
    /// question that was answered.
    var keys: [[UInt8]: (questions: Int, said: UInt64, answered: UInt64)] = [:]
    /// Statements about all keys with a prefix and labels.
    var wide: [Statement] = []
    /// Wide statements up to this one are forgotten, and count as being about everything.
    var forgotten: UInt64 = 0
  }

  /// Most wide statements that are remembered.
  static let mostWide = 64

  fileprivate let engine: Engine
  fileprivate let state = Lock(State())

  init(_ engine: Engine) { self.engine = engine }

  var isEmpty: Bool { state.withLock { $0.keys.isEmpty } }

  /// Whether a question about a key is open.
  func contains(_ key: RawSpan) -> Bool {
    state.withLock { !$0.keys.isEmpty && $0.keys[[UInt8](copying: key)] != nil }
  }

  func say(_ keys: some Sequence<[UInt8]>) {
    state.withLock { state in
      guard !state.keys.isEmpty else { return }
      state.last += 1
      for key in keys { state.keys[key]?.said = state.last }
    }
  }

  /// Says something about all keys with a prefix and labels, also those that are not there.
  func say(prefix: [UInt8], _ labels: LabelFilter = .everything) {
    state.withLock { state in
      guard !state.keys.isEmpty else { return }
      state.last += 1
      state.wide.append(Statement(number: state.last, prefix: prefix, labels: labels.query))
      guard state.wide.count > Self.mostWide else { return }
      state.forgotten = state.wide.removeFirst().number
    }
  }
}
