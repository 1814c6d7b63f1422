internal import Synchronization
internal import TidemarkSync

/// Lets answers wait until what they tell of is on the disk: those of one database together, on one
/// thread, and those that come meanwhile after that.
final class Settler: Sendable {
  /// One answer that waits. Its lease keeps the database open.
  private struct Waiting: Sendable {
    let answer: StagedAnswer
    let lease: DatabaseTable.Lease
    let continuation: CheckedContinuation<Result<Void, Problem>, Never>
  }

  private let pool: WorkPool
  /// Answers that wait for the next round; a database without a round has no row.
  private let rows = Mutex<[DatabaseName: [Waiting]]>([:])

  init(_ pool: WorkPool) { self.pool = pool }

  /// Returns once an answer may go out.
  /// - Throws: when the disk has failed, or too much waits for a thread. The answer must not go out
  ///   then, whatever has become of what it tells.
  func settle(
    _ answer: StagedAnswer, _ lease: DatabaseTable.Lease, of name: DatabaseName
  ) async throws(Problem) {
    let outcome = await withCheckedContinuation { continuation in
      let waiting = Waiting(answer: answer, lease: lease, continuation: continuation)
      let isFirst = rows.withLock { rows in
        let isFirst = rows[name] == nil
        rows[name, default: []].append(waiting)
        return isFirst
      }
      if isFirst { Task { await run(name) } }
    }
    try outcome.get()
  }

  /// Rounds of a database, until nobody waits any more.
  private func run(_ name: DatabaseName) async {
    while true {
      let round = rows.withLock { rows in
        let round = rows[name] ?? []
        rows[name] = round.isEmpty ? nil : []
        return round
      }
      if round.isEmpty { return }
      let outcomes: [Result<Void, Problem>]
      do throws(Problem) {
        // A key of its own: jobs of the database may fill all of its threads.
        outcomes = try await pool.run("\(name) sync") { () throws(Problem) in
          // The first one syncs for all.
          round.map { waiting in
            Result { () throws(Problem) in
              do throws(PeerError) { try waiting.lease.handler.settle(waiting.answer) } catch {
                throw Problem(error)
              }
            }
          }
        }
      } catch { outcomes = round.map { _ in .failure(error) } }
      for (waiting, outcome) in zip(round, outcomes) {
        waiting.continuation.resume(returning: outcome)
      }
    }
  }
}
