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

  private enum CallOutcome: Sendable {
    case reply(Reply)
    /// There is nothing to pull yet, and the caller wants to wait.
    case nothing(PullRequest, DatabaseTable.Lease)
  }

  /// Answers a call.
  func answer(
    _ call: Route.Call, _ name: DatabaseName, _ request: Request,
    _ writer: borrowing ResponseWriter, _ caller: Caller, _ connection: ConnectionTable.ID
  ) async throws(Problem) -> Reply {
    guard let access = caller.grant.access(to: name) else {
      throw Problem(PeerError(.forbidden, "the token is not for this database"))
    }
    let coding = try Coding.ofBody(request.headers)
    let answerCoding = Coding.ofAnswer(request.headers)
    // What a body holds of memory is given back before anything waits.
    func perform() async throws(Problem) -> (CallOutcome, received: Int) {
      let body = try await collect(request, coding, writer)
      let outcome = try await self.perform(call, name, body, coding, answerCoding, access)
      return (outcome, body.bytes.count)
    }
    let (outcome, received) = try await perform()
    var reply: Reply
    switch outcome {
    case .reply(let made): reply = made
    case .nothing(let pull, let lease):
      reply = try await wait(pull, name, lease, answerCoding, access, caller, connection)
    }
    reply.received = received
    return reply
  }

  private func perform(
    _ call: Route.Call, _ name: DatabaseName, _ body: Body, _ coding: Coding,
    _ answerCoding: Coding, _ access: SyncAccess
  ) async throws(Problem) -> CallOutcome {
    try await pool.run(name.description) { [self] () throws(Problem) in
      let message = try attempt { () throws(PeerError) in
        try coding.decode(body.bytes, reader)
      }
      guard message.kind == call.kind else {
        throw Problem(PeerError(.malformed, "the message is not one for this address"))
      }
      let lease = try databases.lease(name, mayCreate: access.canPush)
      if case .pullRequest(let pull) = message, pull.waitMilliseconds > 0 {
        let page = try self.pull(pull, lease, access)
        if page.isEmpty { return .nothing(pull, lease) }
        return .reply(try encode(.pullAnswer(page), answerCoding))
      }
      let answer = try attempt { () throws(PeerError) in
        try lease.handler.answer(message, access: access)
      }
      var reply = try encode(answer, answerCoding)
      if case .pushRequest(let push) = message { reply.entries = push.changes.count }
      return .reply(reply)
    }
  }

  private func pull(
    _ request: PullRequest, _ lease: DatabaseTable.Lease, _ access: SyncAccess
  ) throws(Problem) -> PullAnswer {
    try attempt { () throws(PeerError) in try lease.handler.pull(request, access: access) }
  }

  private func encode(_ answer: WireMessage, _ coding: Coding) throws(Problem) -> Reply {
    do throws(PeerError) { return Reply(try coding.encode(answer, writer), coding) } catch {
      throw Problem(PeerError(.failed, "the answer cannot be written: " + error.message))
    }
  }

  private func attempt<R>(_ body: () throws(PeerError) -> R) throws(Problem) -> R {
    do throws(PeerError) { return try body() } catch { throw Problem(error) }
  }

  // MARK: Waiting

  /// Waits until there is something to pull, the time is over, the caller has gone or the server
  /// ends; then answers with what there is.
  private func wait(
    _ request: PullRequest, _ name: DatabaseName, _ lease: DatabaseTable.Lease,
    _ coding: Coding, _ access: SyncAccess, _ caller: Caller, _ connection: ConnectionTable.ID
  ) async throws(Problem) -> Reply {
    func look() async throws(Problem) -> Reply? {
      try await pool.run(name.description) { [self] () throws(Problem) in
        let page = try pull(request, lease, access)
        return page.isEmpty ? nil : try encode(.pullAnswer(page), coding)
      }
    }
    if let waiter = addWaiter(caller) {
      metrics.waiting(1)
      connections.set(.waiting, connection)
      connections.onHangUp(connection) { waiter.end() }
      // Listening begins before the next look, so that nothing falls between the two.
      let token = lease.handler.observe { waiter.wake() }
      let time = min(.milliseconds(Int64(request.waitMilliseconds)), limits.wait)
      let alarm = Task {
        try? await Task.sleep(for: time)
        waiter.end()
      }
      defer {
        alarm.cancel()
        lease.handler.stopObserving(token)
        connections.onHangUp(connection, nil)
        connections.set(.working, connection)
        waiters.remove(waiter)
        metrics.waiting(-1)
      }
      waiter.wake()
      for await _ in waiter.wakes {
        if let reply = try await look() { return reply }
      }
    } else if !waiters.isEnding {
      // Answered with nothing, the caller would ask again at once.
      throw Problem(PeerError(.busy, "too many calls wait already", retryAfterSeconds: 5))
    }
    return try await pool.run(name.description) { [self] () throws(Problem) in
      try encode(.pullAnswer(try pull(request, lease, access)), coding)
    }
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
    guard (stated ?? 0) <= limits.bodyBytes else { throw Problem.tooLarge }
    if request.headers[.expect]?.lowercased() == "100-continue" {
      // If the caller has gone, reading will say so.
      try? await writer.writeInformationalHead(HTTPResponse(status: .continue))
    }
    var bytes: [UInt8] = []
    var taken = 0
    defer { bodies.giveBack(taken) }
    do {
      for try await part in request.body {
        guard bytes.count + part.readableBytes <= limits.bodyBytes else { throw Problem.tooLarge }
        let cost = part.readableBytes * coding.memoryFactor
        guard bodies.take(cost) else {
          throw Problem(
            PeerError(.busy, "the server has too many requests in hand", retryAfterSeconds: 1))
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
}

extension PullAnswer {
  /// Whether the caller has everything, so that it may wait.
  fileprivate var isEmpty: Bool { entries.isEmpty && cursor.offset >= range.head }
}
