/// The long polls of all databases: bounds their number, wakes them, and ends them.
///
/// They wait for a database by its name without keeping it open: a closed database does not change.
final class Waiters: Sendable {
  /// The pulls that wait for one database.
  private struct Row {
    /// Pulls that have read up to the last change, and those that must read again.
    var fresh: [ObjectIdentifier: PullWaiter] = [:]
    var woken: [ObjectIdentifier: PullWaiter] = [:]
    /// Pulls for which the database is being read.
    var taken: [ObjectIdentifier: PullWaiter] = [:]
    /// Whether a task answers the woken pulls.
    var isAnswered = false
    /// Pulls that have ended with an empty answer, with no change since.
    var inVain: [VainPull.Question: VainPull] = [:]

    var isEmpty: Bool {
      fresh.isEmpty && woken.isEmpty && taken.isEmpty && !isAnswered && inVain.isEmpty
    }

    /// Wakes all pulls after a change.
    /// - Returns: whether the caller must begin to answer them, and how many remembered pulls were
    ///   dropped.
    mutating func wake() -> (begins: Bool, forgotten: Int) {
      let forgotten = inVain.count
      inVain = [:]
      if woken.isEmpty {
        swap(&woken, &fresh)
      } else {
        woken.merge(fresh) { $1 }
        fresh = [:]
      }
      let begins = !isAnswered && !woken.isEmpty
      if begins { isAnswered = true }
      return (begins, forgotten)
    }

    var all: [PullWaiter] { [fresh, woken, taken].flatMap { $0.values.map { $0 } } }
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
      state.change(pull.database) { $0.fresh[ObjectIdentifier(pull)] = pull }
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
    state.change(waiter.database) { row in
      let id = ObjectIdentifier(waiter)
      row.fresh[id] = nil
      row.woken[id] = nil
      row.taken[id] = nil
    }
    state.count -= 1
    let left = state.byCaller[waiter.caller, default: 1] - 1
    state.byCaller[waiter.caller] = left > 0 ? left : nil
  }

  /// Ends all long polls with empty answers.
  func end() {
    for waiter in state.withLock({ $0.rows.values.flatMap(\.all) }) { waiter.end() }
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
  /// - Returns: whether the caller must answer them: by ``takeWoken(_:most:)``, until it returns
  ///   none.
  func wake(_ database: DatabaseName) -> Bool {
    state.withLock { state in
      state.changes += 1
      state.lastChange[database] = state.changes
      guard state.rows[database] != nil else { return false }
      let (begins, forgotten) = state.change(database) { $0.wake() }
      state.inVain -= forgotten
      return begins
    }
  }

  /// Wakes one pull: the database changed between its read and its wait, or its read failed.
  /// - Returns: as ``wake(_:)``.
  func wake(_ pull: PullWaiter) -> Bool {
    state.withLock { state in
      state.change(pull.database) { row in
        let id = ObjectIdentifier(pull)
        guard row.fresh.removeValue(forKey: id) != nil else { return false }
        row.woken[id] = pull
        defer { row.isAnswered = true }
        return !row.isAnswered
      }
    }
  }

  /// Takes some woken pulls, to answer them or to return them by `keepWaiting`.
  func takeWoken(_ database: DatabaseName, most: Int) -> [PullWaiter] {
    state.withLock { state in
      state.change(database) { row in
        let taken = row.woken.prefix(most)
        for (id, pull) in taken {
          row.woken[id] = nil
          row.taken[id] = pull
        }
        if taken.isEmpty { row.isAnswered = false }
        return taken.map(\.value)
      }
    }
  }

  /// Returns a taken pull that has found nothing.
  /// - Parameter change: the number of the database's last change before the read.
  func keepWaiting(_ pull: PullWaiter, since change: UInt64) {
    state.withLock { state in
      let isFresh = state.lastChange[pull.database] ?? 0 == change
      state.change(pull.database) { row in
        // It may have ended meanwhile, and been removed.
        guard row.taken.removeValue(forKey: ObjectIdentifier(pull)) != nil else { return }
        if isFresh {
          row.fresh[ObjectIdentifier(pull)] = pull
        } else {
          row.woken[ObjectIdentifier(pull)] = pull
        }
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
