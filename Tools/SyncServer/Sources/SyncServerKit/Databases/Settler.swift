internal import TidemarkSyncServer

/// Holds answers back until everything in them is durable, as a group commit: the thread of a
/// database's first answer syncs for it and for those added meanwhile, whose threads go on.
final class Settler: Sendable {
  /// One answer that waits. Its lease keeps the database open.
  private struct Waiting: Sendable {
    let answer: StagedAnswer
    let lease: DatabaseTable.Lease
    let finish: @Sendable (Result<Void, Problem>) -> Void
  }

  /// Answers that wait for the next round of syncs; a database without a running round has no row.
  private let rows = PosixMutex<[DatabaseName: [Waiting]]>([:])

  /// Ends a lease and calls `finish` once an answer may be sent, on this thread or on one that
  /// syncs already. The thread of a round's first answer blocks until no more answers of the
  /// database wait.
  /// - Parameters:
  ///   - answer: nil if there is none to wait for.
  ///   - finish: gets a failure when the disk has failed. Then the answer must not be sent: it is
  ///     not known what is durable.
  func settle(
    _ answer: StagedAnswer?, _ lease: DatabaseTable.Lease, of name: DatabaseName,
    _ finish: @escaping @Sendable (Result<Void, Problem>) -> Void
  ) {
    guard let answer, !lease.handler.isSettled(answer) else {
      lease.end()
      return finish(.success(()))
    }
    let waiting = Waiting(answer: answer, lease: lease, finish: finish)
    let isFirst = rows.withLock { rows in
      guard rows[name] == nil else {
        rows[name]?.append(waiting)
        return false
      }
      rows[name] = []
      return true
    }
    guard isFirst else { return }
    var round = [waiting]
    while !round.isEmpty {
      // The first one syncs for all: the others find everything durable.
      for waiting in round {
        let outcome = Result { () throws(PeerError) in
          try waiting.lease.handler.settle(waiting.answer)
        }
        waiting.lease.end()
        waiting.finish(outcome.mapError { Problem($0) })
      }
      round = rows.withLock { rows in
        let next = rows[name] ?? []
        rows[name] = next.isEmpty ? nil : []
        return next
      }
    }
  }
}
