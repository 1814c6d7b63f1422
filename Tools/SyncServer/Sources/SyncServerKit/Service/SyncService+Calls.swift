internal import HTTPTypes
internal import HummingbirdCore
internal import NIOCore
internal import TidemarkSync

extension SyncService {
  /// A body that counts against what may be in hand, until it is let go.
  private final class Body: Sendable {
    let bytes: [UInt8]
    private let cost: Int
    private let budget: Budget

    init(_ bytes: [UInt8], cost: Int, _ budget: Budget) {
      self.bytes = bytes
      self.cost = cost
      self.budget = budget
    }

    deinit { budget.giveBack(cost) }
  }

  /// An answer that is ready to go out.
  private struct Outcome: Sendable {
    var reply: Reply
    /// Set where there is nothing to pull yet, and the caller wants to wait.
    var waits: Wait?
  }

  private struct Wait: Sendable {
    var request: PullRequest
    /// Up to here nothing was found.
    var lookedThrough: Position
  }

  /// Answers a call.
  func answer(
    _ call: Route.Call, _ name: DatabaseName, _ request: Request,
    _ writer: borrowing ResponseWriter, _ caller: Caller, _ connection: ConnectionTable.ID
  ) async throws(Problem) -> Reply {
    guard let access = caller.grant.access(to: name) else {
      throw Problem(PeerError(.forbidden, "the token is not for this database"))
    }
    try await countMaking(of: name, caller, access)
    let coding = try Coding.ofBody(request.headers)
    let answerCoding = Coding.ofAnswer(request.headers)
    // The memory of a body is given back before anything waits.
    func perform() async throws(Problem) -> (Outcome, received: Int) {
      let body = try await collect(request, coding, writer)
      let outcome = try await answer(
        name, call.lane, answerCoding, access, caller
      ) { [reader] () throws(Problem) in
        let message = try Self.attempt { () throws(PeerError) in
          try coding.decode(body.bytes, reader)
        }
        guard message.kind == call.kind else {
          throw Problem(PeerError(.malformed, "the message is not one for this address"))
        }
        return message
      }
      return (outcome, body.bytes.count)
    }
    var (outcome, received) = try await perform()
    if let pull = outcome.waits {
      outcome = try await wait(pull, name, outcome, answerCoding, access, caller, connection)
    }
    outcome.reply.received = received
    return outcome.reply
  }

  /// Answers a message once everything that the answer tells of is on the disk.
  /// - Parameter lookedThrough: up to there an earlier look of the same pull has found nothing.
  private func answer(
    _ name: DatabaseName, _ lane: WorkPool.Lane, _ coding: Coding, _ access: SyncAccess,
    _ caller: Caller, lookedThrough: Position = .beginning,
    _ message: @escaping @Sendable () throws(Problem) -> WireMessage
  ) async throws(Problem) -> Outcome {
    let (outcome, unsettled) = try await pool.run(name.description, lane) {
      [self] () throws(Problem) in
      let account = "\(lane) \(caller.id)"
      if lane != .calls, let seconds = searches.debt(of: account) {
        throw Problem(
          PeerError(
            .busy, "more comparing and searching than this server does for one caller",
            retryAfter: .seconds(seconds)))
      }
      let message = try message()
      let lease = try databases.lease(name, mayCreate: access.canPush)
      let start = ContinuousClock.now
      let staged = try Self.attempt { () throws(PeerError) in
        try lease.handler.stage(message, access: access, lookedThrough: lookedThrough)
      }
      var outcome = Outcome(reply: try encode(staged.message, coding))
      var isSearch = lane == .digests
      switch (message, staged.message) {
      case (.pushRequest(let push), _): outcome.reply.entries = push.changes.count
      case (.pullRequest(let pull), .pullAnswer(let page)) where page.entries.isEmpty:
        isSearch = true
        guard pull.waitMilliseconds > 0, page.cursor.offset >= page.range.head else { break }
        outcome.waits = Wait(request: pull, lookedThrough: page.cursor)
      default: break
      }
      // A page with entries brings its reader on, so it costs nothing.
      if isSearch { searches.charge(account, (ContinuousClock.now - start) / .seconds(1)) }
      return (outcome, lease.handler.isSettled(staged) ? nil : (staged, lease))
    }
    if let (staged, lease) = unsettled { try await settler.settle(staged, lease, of: name) }
    return outcome
  }

  private func encode(_ answer: WireMessage, _ coding: Coding) throws(Problem) -> Reply {
    do throws(PeerError) { return Reply(try coding.encode(answer, writer), coding) } catch {
      throw Problem(PeerError(.failed, "the answer cannot be written: " + error.message))
    }
  }

  private static func attempt<R>(_ body: () throws(PeerError) -> R) throws(Problem) -> R {
    do throws(PeerError) { return try body() } catch { throw Problem(error) }
  }

  // MARK: Waiting

  /// Waits until there is something to pull, the time is over, the caller has gone or the server
  /// ends; then answers with what there is.
  ///
  /// The database may be closed meanwhile: it is opened again for who appends to it, and those that
  /// wait are woken by its name.
  /// - Parameter nothing: the answer for who has waited in vain.
  private func wait(
    _ wait: Wait, _ name: DatabaseName, _ nothing: Outcome,
    _ coding: Coding, _ access: SyncAccess, _ caller: Caller, _ connection: ConnectionTable.ID
  ) async throws(Problem) -> Outcome {
    guard let waiter = addWaiter(caller, name) else {
      if waiters.isEnding { return nothing }
      // Answered with nothing, the caller would ask again at once.
      throw Problem(PeerError(.busy, "too many calls wait already", retryAfter: .seconds(5)))
    }
    metrics.waiting(1)
    connections.set(.waiting, connection)
    connections.onHangUp(connection) { waiter.end() }
    let time = min(.milliseconds(Int64(wait.request.waitMilliseconds)), limits.wait)
    let alarm = Task {
      try? await Task.sleep(for: time)
      waiter.end()
    }
    var again: Task<Void, Never>?
    defer {
      alarm.cancel()
      again?.cancel()
      connections.onHangUp(connection, nil)
      connections.set(.working, connection)
      waiters.remove(waiter)
      metrics.waiting(-1)
    }
    // Entries that came since the first look have woken nobody.
    waiter.wake()
    var wait = wait
    for await _ in waiter.wakes {
      do throws(Problem) {
        let outcome = try await answer(
          name, .pulls, coding, access, caller, lookedThrough: wait.lookedThrough
        ) { [request = wait.request] in .pullRequest(request) }
        guard let next = outcome.waits else { return outcome }
        wait = next
      } catch {
        // Where too many were woken the others go first; who waits can wait for that as well.
        guard error.error.kind == .busy else { throw error }
        let pause = error.error.retryAfter ?? .seconds(1)
        again?.cancel()
        again = Task {
          if (try? await Task.sleep(for: pause)) != nil { waiter.wake() }
        }
      }
    }
    return nothing
  }

  // MARK: Bodies

  /// Reads the body of a request.
  private func collect(
    _ request: Request, _ coding: Coding, _ writer: borrowing ResponseWriter
  ) async throws(Problem) -> Body {
    // A number that fits no number here is a length, too.
    let stated = request.headers[.contentLength].map { Int($0) ?? .max }
    guard stated != nil || request.headers[.transferEncoding] != nil else {
      throw Problem(.lengthRequired, .malformed, "the request has no body")
    }
    guard (stated ?? 0) <= limits.bodyBytes else { throw Problem.tooLarge(limits.bodyBytes) }
    if request.headers[.expect]?.lowercased() == "100-continue" {
      // If the caller has gone, reading will say so.
      try? await writer.writeInformationalHead(HTTPResponse(status: .continue))
    }
    var bytes: [UInt8] = []
    var taken = 0
    defer { bodies.giveBack(taken) }
    do {
      for try await part in request.body {
        guard bytes.count + part.readableBytes <= limits.bodyBytes else {
          throw Problem.tooLarge(limits.bodyBytes)
        }
        let cost = part.readableBytes * coding.memoryFactor
        guard bodies.take(cost) else {
          throw Problem(
            PeerError(.busy, "the server has too many requests in hand", retryAfter: .seconds(1)))
        }
        taken += cost
        bytes.append(contentsOf: part.readableBytesView)
      }
    } catch let problem as Problem {
      throw problem
    } catch {
      throw Problem(PeerError(.malformed, "the body ends too early"))
    }
    guard stated == nil || stated == bytes.count else {
      throw Problem(PeerError(.malformed, "the body ends too early"))
    }
    let cost = taken
    taken = 0
    return Body(bytes, cost: cost, bodies)
  }
}

extension Route.Call {
  /// The message that it takes.
  fileprivate var kind: WireMessage.Kind {
    switch self {
    case .hello: .helloRequest
    case .push: .pushRequest
    case .pull: .pullRequest
    case .values: .valuesRequest
    case .digest: .digestRequest
    case .upload: .uploadRequest
    case .download: .downloadRequest
    }
  }

  /// Where its work belongs.
  fileprivate var lane: WorkPool.Lane {
    switch self {
    case .pull: .pulls
    case .digest: .digests
    case .hello, .push, .values, .upload, .download: .calls
    }
  }
}
