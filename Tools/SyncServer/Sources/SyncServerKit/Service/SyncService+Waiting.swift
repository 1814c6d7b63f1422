internal import TidemarkSyncServer

extension SyncService {
  /// Waits until a long poll has something to return, its time is over, its connection or the
  /// server ends; then answers it.
  ///
  /// The database may be closed meanwhile: a push opens it again, and wakes long polls by its name.
  /// - Parameters:
  ///   - nothing: the pull, and its answer when the time is over.
  ///   - change: the number of the database's last change when the pull found nothing.
  func wait(
    _ nothing: VainPull, since change: UInt64, _ name: DatabaseName, _ caller: Caller,
    _ connection: ConnectionTable.ID
  ) async throws(Problem) -> Reply {
    let waiter = PullWaiter(
      nothing.question, name, lookedThrough: nothing.lookedThrough, at: change)
    guard waiters.add(waiter) else {
      if waiters.isEnding { return nothing.reply }
      // After an empty answer the caller would pull again at once.
      throw Problem(.busy, "too many calls wait already", retryAfter: .seconds(5))
    }
    endIfReplaced(waiter, caller)
    if databases.home.refuses(caller, waiter.question.request.replica) { waiter.end() }
    metrics.waiting(1)
    connections.set(.waiting, connection)
    connections.onHangUp(connection) { waiter.end() }
    // A long poll must not outlast its caller's token.
    let time = min(
      .milliseconds(Int64(nothing.question.request.waitMilliseconds)), limits.wait,
      caller.validFor ?? limits.wait)
    let alarm = Task {
      if (try? await Task.sleep(for: time)) != nil { waiter.end() }
    }
    defer {
      alarm.cancel()
      connections.onHangUp(connection, nil)
      connections.set(.working, connection)
      waiters.remove(waiter)
      metrics.waiting(-1)
    }
    // Entries appended before the waiter was added have not woken it.
    if waiters.lastChange(of: name) != change, waiters.wake(waiter) {
      Task { await answerWoken(name) }
    }
    if let outcome = await waiter.outcome() { return try outcome.get() }
    var vain = nothing
    vain.time = .now
    waiters.remember(vain, of: name, since: waiter.lastLook ?? 0)
    return nothing.reply
  }

  /// The outcome of a read for a woken long poll.
  private enum Look: Sendable {
    case answered(Reply)
    case nothing(through: FeedPosition)
    case failed(Problem)
  }

  /// Answers the woken long polls of a database, a slice at a time, until none is left.
  func answerWoken(_ name: DatabaseName) async {
    while case let woken = waiters.takeWoken(name), !woken.isEmpty {
      for start in stride(from: 0, to: woken.count, by: limits.wokenAtOnce) {
        await answer(Array(woken[start...].prefix(limits.wokenAtOnce)), name)
      }
    }
  }

  private func answer(_ slice: [PullWaiter], _ name: DatabaseName) async {
    let change = waiters.lastChange(of: name)
    do throws(Problem) {
      let looks: [Look] = try await pool.run(
        name.description, .pulls,
        finishing: { [self] (finish) throws(Problem) in
          let lease = try databases.lease(name, mayCreate: false)
          var last: StagedAnswer?
          let looks = slice.map { look(for: $0, lease, &last) }
          // One sync is enough: the other answers have nothing later than the last one's end.
          settler.settle(last, lease, of: name) { settled in
            finish(settled.map { looks })
          }
        })
      for (waiter, look) in zip(slice, looks) { finish(waiter, look, since: change) }
    } catch {
      for waiter in slice { finish(waiter, .failed(error), since: change) }
    }
  }

  /// Reads the feed for a woken long poll, on a thread of the pool.
  private func look(
    for waiter: PullWaiter, _ lease: DatabaseTable.Lease, _ last: inout StagedAnswer?
  ) -> Look {
    // Its connection has ended, or its time is over.
    if waiter.isOver { return .nothing(through: waiter.lookedThrough) }
    let question = waiter.question
    do throws(Problem) {
      let (staged, _) = try stage(
        .pullRequest(question.request), lease, .pulls, question.access, question.caller,
        lookedThrough: waiter.lookedThrough, sharing: last)
      if let through = staged.end { return .nothing(through: through) }
      last = staged
      return .answered(try encode(staged, question.coding))
    } catch { return .failed(error) }
  }

  private func finish(_ waiter: PullWaiter, _ look: Look, since change: UInt64) {
    // Also one that is over is not looked for again.
    waiter.note(lookedThrough: waiter.lookedThrough, at: change)
    switch look {
    case .answered(let reply): waiter.finish(.success(reply))
    case .nothing(let through): waiter.note(lookedThrough: through, at: change)
    case .failed(let problem):
      // If the server is busy, a long poll waits on rather than fails.
      guard problem.error.kind == .busy || problem.error == Problem.noRoom.error else {
        return waiter.finish(.failure(problem))
      }
      let pause = problem.error.retryAfter ?? .seconds(1)
      Task {
        try? await Task.sleep(for: pause)
        if waiters.wake(waiter) { await answerWoken(waiter.database) }
      }
    }
  }
}
