/// The long polls of all databases: bounds their number, wakes them, and ends them.
///
/// They wait for a database by its name without keeping it open: a closed database does not change.
final class Waiters: Sendable {
  /// The pulls that wait for one database.
  private struct Row {
    var pulls: [ObjectIdentifier: PullWaiter] = [:]
    /// Whether a task answers those that have not looked since the last change.
    var isAnswered = false
    /// Pulls that have ended with an empty answer, with no change since.
    var inVain: [VainPull.Question: VainPull] = [:]

    var isEmpty: Bool { pulls.isEmpty && !isAnswered && inVain.isEmpty }

    /// - Returns: whether the caller must begin to answer pulls.
    mutating func begin() -> Bool {
      guard !isAnswered, !pulls.isEmpty else { return false }
      isAnswered = true
      return true
    }
  }

  private struct State {
    var rows: [DatabaseName: Row] = [:]
    var count = 0
    var byCaller: [String: Int] = [:]
    /// Counts the changes of all databases; by database, the last one's number.
    var changes: UInt64 = 0
    var lastChange: [DatabaseName: UInt64] = [:]
    var inVain = 0
    var isEnding = false

    /// Changes the row of a database; an empty row is not kept.
    mutating func change<R>(_ name: DatabaseName, _ body: (inout Row) -> R) -> R {
      var row = rows.removeValue(forKey: name) ?? Row()
      defer { if !row.isEmpty { rows[name] = row } }
      return body(&row)
    }
  }

  private let most: Int
  private let mostPerCaller: Int
  private let state = PosixMutex(State())

  init(most: Int, perCaller: Int) {
    self.most = most
    mostPerCaller = perCaller
  }

  /// Whether the server shuts down.
  var isEnding: Bool { state.withLock { $0.isEnding } }

  // MARK: Coming and going

  /// Adds a pull that has found nothing.
  /// - Returns: false when there are too many, or the server shuts down.
  func add(_ pull: PullWaiter) -> Bool {
    state.withLock { state in
      guard !state.isEnding, count(pull, &state) else { return false }
      state.change(pull.database) { $0.pulls[ObjectIdentifier(pull)] = pull }
      return true
    }
  }

  private func count(_ waiter: PullWaiter, _ state: inout State) -> Bool {
    guard state.count < most, state.byCaller[waiter.caller, default: 0] < mostPerCaller else {
      return false
    }
    state.count += 1
    state.byCaller[waiter.caller, default: 0] += 1
    return true
  }

  func remove(_ waiter: PullWaiter) { state.withLock { Self.remove(waiter, &$0) } }

  private static func remove(_ waiter: PullWaiter, _ state: inout State) {
    state.change(waiter.database) { $0.pulls[ObjectIdentifier(waiter)] = nil }
    state.count -= 1
    let left = state.byCaller[waiter.caller, default: 1] - 1
    state.byCaller[waiter.caller] = left > 0 ? left : nil
  }

  /// Ends all long polls with empty answers.
  func end() {
    for waiter in state.withLock({ $0.rows.values.flatMap(\.pulls.values) }) { waiter.end() }
  }

  /// Ends all long polls, and refuses others from then on.
  func endAll() {
    state.withLock { $0.isEnding = true }
    end()
  }

  // MARK: News

  /// The number of a database's last change, to notice another change after a read.
  func lastChange(of database: DatabaseName) -> UInt64 {
    state.withLock { $0.lastChange[database] ?? 0 }
  }

  /// Notes a change of a database, and wakes its pulls.
  /// - Returns: whether the caller must answer them: by ``takeWoken(_:)``, until it returns none.
  func wake(_ database: DatabaseName) -> Bool {
    state.withLock { state in
      state.changes += 1
      state.lastChange[database] = state.changes
      guard let row = state.rows[database] else { return false }
      state.inVain -= row.inVain.count
      return state.change(database) { row in
        row.inVain = [:]
        return row.begin()
      }
    }
  }

  /// Wakes one pull: the database changed between its read and its wait, or its read failed.
  /// - Returns: as ``wake(_:)``.
  func wake(_ pull: PullWaiter) -> Bool {
    pull.mustLook()
    return state.withLock { $0.change(pull.database) { $0.begin() } }
  }

  /// The pulls that have not looked since the last change, for a task that answers them.
  func takeWoken(_ database: DatabaseName) -> [PullWaiter] {
    state.withLock { state in
      let last = state.lastChange[database] ?? 0
      return state.change(database) { row in
        let woken = row.pulls.values.filter { $0.lastLook.map { $0 < last } ?? true }
        if woken.isEmpty { row.isAnswered = false }
        return woken
      }
    }
  }

  // MARK: Waiting again

  /// Remembers a pull that has ended with an empty answer, so that the same one can wait again
  /// without a read of the database, which may be closed by now.
  /// - Parameter change: the number of the database's last change before its last read.
  func remember(_ pull: VainPull, of database: DatabaseName, since change: UInt64) {
    state.withLock { state in
      guard state.lastChange[database] ?? 0 == change, state.inVain < most, !state.isEnding else {
        return
      }
      state.inVain += state.change(database) { row in
        row.inVain.updateValue(pull, forKey: pull.question) == nil ? 1 : 0
      }
    }
  }

  /// The remembered pull with the same question, if the database has not changed since.
  func remembered(_ question: VainPull.Question, of database: DatabaseName) -> VainPull? {
    state.withLock { $0.rows[database]?.inVain[question] }
  }

  /// Whether any pull of a database is remembered.
  func remembersAny(of database: DatabaseName) -> Bool {
    state.withLock { $0.rows[database]?.inVain.isEmpty == false }
  }

  /// Forgets pulls that ended before a time, as their clients have not pulled again.
  func forget(before time: ContinuousClock.Instant) {
    state.withLock { state in
      for name in state.rows.filter({ !$0.value.inVain.isEmpty }).keys {
        state.inVain -= state.change(name) { row in
          let before = row.inVain.count
          row.inVain = row.inVain.filter { $0.value.time >= time }
          return before - row.inVain.count
        }
      }
    }
  }
}
