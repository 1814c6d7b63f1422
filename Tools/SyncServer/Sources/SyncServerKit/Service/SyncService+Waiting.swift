internal import TidemarkSyncServer

extension SyncService {
  /// Waits until there is something to pull, the time is over, the caller has gone or the server
  /// ends; then answers with what there is.
  ///
  /// The database may be closed meanwhile: it is opened again for who appends to it, and those that
  /// wait are woken by its name.
  /// - Parameters:
  ///   - nothing: the pull, and the answer for who has waited in vain.
  ///   - change: the number of the database's last change when it was looked at.
  func wait(
    _ nothing: VainPull, since change: UInt64, _ name: DatabaseName, _ caller: Caller,
    _ connection: ConnectionTable.ID
  ) async throws(Problem) -> Reply {
    let waiter = PullWaiter(
      nothing.question, name, lookedThrough: nothing.lookedThrough, at: change)
    guard waiters.add(waiter) else {
      if waiters.isEnding { return nothing.reply }
      // Answered with nothing, the caller would ask again at once.
      throw Problem(.busy, "too many calls wait already", retryAfter: .seconds(5))
    }
    endIfReplaced(waiter, caller)
    metrics.waiting(1)
    connections.set(.waiting, connection)
    connections.onHangUp(connection) { waiter.end() }
    // No wait outlives its caller's token.
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
    // Entries that came since the look have woken nobody.
    if waiters.lastChange(of: name) != change, waiters.wake(waiter) {
      Task { await answerWoken(name) }
    }
    if let outcome = await waiter.outcome() { return try outcome.get() }
    var vain = nothing
    vain.time = .now
    waiters.remember(vain, of: name, since: waiter.lastLook)
    return nothing.reply
  }

  /// The outcome of a look for one that waits.
  private enum Look: Sendable {
    case answered(Reply)
    case nothing(through: Position)
    case failed(Problem)
  }

  /// Answers those that wait for a database and were woken, a slice at a time, until all have been.
  func answerWoken(_ name: DatabaseName) async {
    while true {
      let slice = waiters.takeWoken(name, most: limits.wokenAtOnce)
      if slice.isEmpty { return }
      let change = waiters.lastChange(of: name)
      do throws(Problem) {
        let looks: [Look] = try await pool.run(
          name.description, .pulls,
          finishing: { [self] (finish) throws(Problem) in
            let lease = try databases.lease(name, mayCreate: false)
            var last: StagedAnswer?
            let looks = slice.map { look(for: $0, lease, &last) }
            // The others tell of nothing that stands behind what the last one tells of.
            settler.settle(last, lease, of: name) { settled in
              finish(settled.map { looks })
            }
          })
        for (waiter, look) in zip(slice, looks) { finish(waiter, look, since: change) }
      } catch {
        for waiter in slice { finish(waiter, .failed(error), since: change) }
      }
    }
  }

  /// Looks for one that waits, on a thread of the pool.
  private func look(
    for waiter: PullWaiter, _ lease: DatabaseTable.Lease, _ last: inout StagedAnswer?
  ) -> Look {
    // Its caller has gone.
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
    switch look {
    case .answered(let reply): waiter.finish(.success(reply))
    case .nothing(let through):
      waiter.note(lookedThrough: through, at: change)
      waiters.keepWaiting(waiter, since: change)
    case .failed(let problem):
      // Where there is too much to do the others go first; who waits can wait for that as well.
      guard problem.error.kind == .busy || problem.error == Problem.noRoom.error else {
        return waiter.finish(.failure(problem))
      }
      waiters.keepWaiting(waiter, since: change)
      let pause = problem.error.retryAfter ?? .seconds(1)
      Task {
        try? await Task.sleep(for: pause)
        if waiters.wake(waiter) { await answerWoken(waiter.database) }
      }
    }
  }
}
