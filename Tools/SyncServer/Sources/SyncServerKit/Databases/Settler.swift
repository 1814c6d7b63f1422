internal import TidemarkSyncServer

/// Lets answers wait until what they tell of is on the disk: the thread that has made the first one
/// of a database syncs for it and for those that come meanwhile, whose threads go on judging.
final class Settler: Sendable {
  /// One answer that waits. Its lease keeps the database open.
  private struct Waiting: Sendable {
    let answer: StagedAnswer
    let lease: DatabaseTable.Lease
    let finish: @Sendable (Result<Void, Problem>) -> Void
  }

  /// Answers that wait for the next round; a database without a round has no row.
  private let rows = PosixMutex<[DatabaseName: [Waiting]]>([:])

  /// Calls `finish` once an answer may go out, on this thread or on one that syncs already; blocks
  /// for as long as others of the database wait for this one. Ends the lease.
  /// - Parameter finish: gets a failure when the disk has failed. The answer must not go out then,
  ///   whatever has become of what it tells.
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
      // The first one syncs for all.
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
