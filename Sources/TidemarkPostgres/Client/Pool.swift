#if PostgreSQL
  internal import Tidemark
  internal import TidemarkEngine

  /// The connections of a process, each lent to one thread at a time.
  final class Pool: Sendable {
    private struct State {
      var idle: [Connection] = []
      /// How many connections there are, idle or lent.
      var count = 0
      /// Rises when all connections are dropped.
      var generation = 0
      var isClosed = false
      /// How often a transaction was made again, by SQLSTATE, and how often a condition of one did
      /// not hold.
      var retries: [String: Int] = [:]
      var refusals = 0
    }

    private let settings: PostgresSettings
    private let state = Monitor(State())
    /// A connection is closed at about this age, so that a balancer in between can spread them.
    private static let age: Duration = .seconds(30 * 60)
    /// Most attempts at a transaction that fails to serialize, which is frequent where isolation is
    /// stricter than read committed. A call's time-out ends them, too.
    private static let attempts = 64

    init(_ settings: PostgresSettings) { self.settings = settings }

    /// Runs statements that only read, in one round trip.
    func read(_ calls: [Call]) throws(TidemarkError) -> [Rows] {
      try again { (connection) throws(Failure) in try connection.read(calls) }
    }

    /// Runs statements as one transaction, in one round trip.
    /// - Parameter guarded: whether a condition among them may fail.
    /// - Returns: nil where that failed, and nothing was changed.
    /// - Throws: `unknownOutcome` where the connection was lost at the commit.
    func write(_ calls: [Call], guarded: Bool = false) throws(TidemarkError) -> [Rows]? {
      try again { (connection) throws(Failure) in
        do throws(Failure) { return try connection.write(calls) } catch {
          guard guarded, error.isGuard else { throw error }
          state.withLock { $0.refusals += 1 }
          return nil
        }
      }
    }

    /// Ends transactions of servers that have stopped in the middle of sending one (a machine that
    /// is frozen, or cut off): they may hold the lock of a database, and none of PostgreSQL's
    /// time-outs ends them.
    private static let endStalled = Statement(
      """
      SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity
      WHERE usename=current_user AND application_name='tidemark' AND wait_event='ClientRead'
        AND xact_start IS NOT NULL AND state_change < clock_timestamp() - interval '15 seconds'
      """)

    /// Lends a connection for several round trips.
    func again<R>(_ body: (Connection) throws(Failure) -> R) throws(TidemarkError) -> R {
      var attempt = 1
      let end = ContinuousClock.now + settings.callTimeout
      while true {
        do throws(Failure) { return try lend(body) } catch {
          if error.isLockTimeout {
            _ = try? lend { (connection) throws(Failure) in
              try connection.read([Self.endStalled()])
            }
          }
          let mayTry = error.isPassing || error.isOfServer && !error.mayBeCommitted
          guard mayTry, attempt < (error.isPassing ? Self.attempts : 3), .now < end else {
            throw error.error
          }
          attempt += 1
          state.withLock { $0.retries[error.state.isEmpty ? "lost" : error.state, default: 0] += 1 }
          // Others that wait for the same row wait for another time.
          let nanoseconds = UInt64.random(in: 1...UInt64(5 << min(attempt, 4))) * 1_000_000
          _ = Monitor(()).wait(timeoutNanoseconds: nanoseconds) { _ in false }
        }
      }
    }

    private func lend<R>(_ body: (Connection) throws(Failure) -> R) throws(Failure) -> R {
      let (connection, generation) = try borrow()
      do throws(Failure) {
        let result = try body(connection)
        giveBack(connection, generation)
        return result
      } catch {
        if error.isOfServer { dropAll() }
        giveBack(connection, generation)
        throw error
      }
    }

    private enum Place {
      case idle(Connection, Int)
      case new(Int)
      case closed
    }

    private func borrow() throws(Failure) -> (Connection, Int) {
      let most = settings.connections
      let nanoseconds = settings.callTimeout.wholeMilliseconds * 1_000_000
      let place: Place? = state.wait(timeoutNanoseconds: nanoseconds) { state in
        if state.isClosed { return .closed }
        if let connection = state.idle.popLast() { return .idle(connection, state.generation) }
        guard state.count < most else { return nil }
        state.count += 1
        return .new(state.generation)
      }
      switch place {
      case .idle(let connection, let generation): return (connection, generation)
      case .closed: throw Failure(state: "closed", message: "the feeds are closed")
      case nil: throw Failure(state: "53300", message: "all connections are in use")
      case .new(let generation):
        do throws(Failure) { return (try Connection(settings), generation) } catch {
          state.withLock { $0.count -= 1 }
          state.signal()
          throw error
        }
      }
    }

    private func giveBack(_ connection: Connection, _ generation: Int) {
      let isOld = .now - connection.opened > Self.age
      state.withLock { state in
        if connection.isIdle, !isOld, generation == state.generation, !state.isClosed {
          state.idle.append(connection)
        } else {
          state.count -= 1
        }
      }
      state.signal()
    }

    /// Drops all connections: there is another primary.
    private func dropAll() {
      let idle = state.withLock { state in
        defer {
          state.count -= state.idle.count
          state.idle = []
          state.generation += 1
        }
        return state.idle
      }
      // They are closed without the lock.
      _ = idle
      state.broadcast()
    }

    func close() {
      state.withLock { $0.isClosed = true }
      dropAll()
    }

    var metrics: [PostgresMetric] {
      let state = state.withLock { $0 }
      return [
        PostgresMetric("connections", .gauge, "Connections to PostgreSQL.", state.count),
        PostgresMetric(
          "idle_connections", .gauge, "Connections to PostgreSQL that no call uses.",
          state.idle.count),
        PostgresMetric(
          "refused_appends_total", .counter, "Batches that were judged again.", state.refusals),
      ]
        + state.retries.sorted { $0.key < $1.key }.map {
          PostgresMetric(
            "retries_total", .counter, "Transactions that were made again.", $0.value,
            labels: "{sqlstate=\"\($0.key)\"}")
        }
    }
  }
#endif
