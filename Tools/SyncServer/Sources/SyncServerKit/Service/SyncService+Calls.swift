internal import HTTPTypes
internal import HummingbirdCore
internal import NIOCore
internal import TidemarkSyncServer

extension SyncService {
  /// A request's body, which counts against the budget of all bodies while it lives.
  private final class Body: Sendable {
    let bytes: [UInt8]
    private let room: [Budget.Part]

    init(_ bytes: [UInt8], _ room: [Budget.Part]) {
      self.bytes = bytes
      self.room = room
    }
  }

  /// The outcome of a call.
  private enum Outcome: Sendable {
    case reply(Reply)
    /// A long poll that found nothing, and the number of the database's last change before that.
    case waits(VainPull, since: UInt64)
  }

  /// Answers a call.
  func answer(
    _ call: WireMessage.Kind, _ name: DatabaseName, _ request: Request,
    _ writer: borrowing ResponseWriter, _ caller: Caller, _ connection: ConnectionTable.ID
  ) async throws(Problem) -> Reply {
    guard let access = caller.grant.access(to: name) else {
      throw Problem(.forbidden, "the token is not for this database")
    }
    let coding = try Coding.ofBody(request.headers)
    let answerCoding = Coding.ofAnswer(request.headers)
    let mayBeKnown = call == .pullRequest && waiters.remembersAny(of: name)
    if !mayBeKnown { try await countMaking(of: name, caller, access) }
    // In a function of its own, so that the body's memory is released before a long poll waits.
    func perform() async throws(Problem) -> (Outcome, received: Int) {
      let body = try await collect(request, coding, writer)
      if mayBeKnown {
        if let pull = knownPull(body.bytes, coding, answerCoding, access, caller) {
          try admit(caller, pull.request.replica)
          if let known = waiters.remembered(pull, of: name) {
            return (.waits(known, since: waiters.lastChange(of: name)), body.bytes.count)
          }
        }
        try await countMaking(of: name, caller, access)
      }
      let outcome = try await answer(
        name, call.lane, answerCoding, access, caller
      ) { [reader] () throws(Problem) in
        let message = try Self.attempt { () throws(PeerError) in
          try coding.decode(body.bytes, reader)
        }
        guard message.kind == call else {
          throw Problem(.malformed, "the message is not one for this address")
        }
        try self.admit(caller, message.replica)
        return message
      }
      return (outcome, body.bytes.count)
    }
    let (outcome, received) = try await perform()
    var reply: Reply
    switch outcome {
    case .reply(let made): reply = made
    case .waits(let pull, let change):
      reply = try await wait(pull, since: change, name, caller, connection)
    }
    reply.received = received
    return reply
  }

  /// Throws for a replica that may not use its caller's token, and for whom an operator revoked.
  private func admit(_ caller: Caller, _ replica: ReplicaID?) throws(Problem) {
    guard let replica else { return }
    if let bound = caller.replica, ReplicaID(hexadecimal: bound) != replica {
      throw Problem(.forbidden, "the token is for another replica")
    }
    guard !databases.home.refuses(caller, replica) else {
      throw Problem(.forbidden, "the operator of the server has revoked this device's access")
    }
  }

  /// Answers a message once everything in the answer is durable.
  private func answer(
    _ name: DatabaseName, _ lane: WorkPool.Lane, _ coding: Coding, _ access: SyncAccess,
    _ caller: Caller, _ message: @escaping @Sendable () throws(Problem) -> WireMessage
  ) async throws(Problem) -> Outcome {
    try await pool.run(
      name.description, lane,
      finishing: { [self] (finish) throws(Problem) in
        let message = try message()
        let lease = try databases.lease(name, mayCreate: access.canPush)
        let (outcome, staged) = try judge(
          message, name, lease, lane, coding, access, caller)
        settler.settle(staged, lease, of: name) { settled in
          finish(settled.map { outcome })
        }
      })
  }

  private func judge(
    _ message: WireMessage, _ name: DatabaseName, _ lease: DatabaseTable.Lease,
    _ lane: WorkPool.Lane, _ coding: Coding, _ access: SyncAccess, _ caller: Caller
  ) throws(Problem) -> (Outcome, StagedAnswer) {
    let change = waiters.lastChange(of: name)
    let (staged, isSearch) = try stage(message, lease, lane, access, caller.id)
    var reply = try encode(staged, coding)
    if case .pushRequest(let push) = message { reply.entries = push.changes.count }
    guard isSearch, case .pullRequest(let pull) = message, pull.waitMilliseconds > 0,
      let through = staged.end
    else { return (.reply(reply), staged) }
    let question = VainPull.Question(
      caller: caller.id, access: access, coding: coding, request: pull)
    let vain = VainPull(question: question, reply: reply, lookedThrough: through)
    return (.waits(vain, since: change), staged)
  }

  /// Makes an answer, on a thread of the pool.
  /// - Parameters:
  ///   - lookedThrough: the position up to which the same long poll has found nothing so far.
  ///   - other: the answer to another caller, whose page may be the same.
  /// - Returns: also whether it was a digest or an empty page, which are charged to the caller.
  func stage(
    _ message: WireMessage, _ lease: DatabaseTable.Lease, _ lane: WorkPool.Lane,
    _ access: SyncAccess, _ caller: String, lookedThrough: FeedPosition = .beginning,
    sharing other: StagedAnswer? = nil
  ) throws(Problem) -> (StagedAnswer, isSearch: Bool) {
    // Short work is not charged to an account.
    let account = lane == .calls ? nil : "\(lane) \(caller)"
    if let account, let seconds = searches.debt(of: account) {
      throw Problem(
        .busy, "more comparing and searching than this server does for one caller",
        retryAfter: .seconds(seconds))
    }
    let start = ContinuousClock.now
    let staged = try Self.attempt { () throws(PeerError) in
      try lease.handler.stage(
        message, access: access, lookedThrough: lookedThrough, sharing: other)
    }
    // A page with entries is not charged, as its reader makes progress.
    let isSearch = lane == .digests || staged.isEmptyPage
    if let account, isSearch {
      searches.charge(account, (ContinuousClock.now - start) / .seconds(1))
    }
    return (staged, isSearch)
  }

  func encode(_ answer: StagedAnswer, _ coding: Coding) throws(Problem) -> Reply {
    let bytes = answer.message.contentBytes * coding.answerFactor
    // For the encoding only: `respond` takes the memory of the encoded answer.
    guard let room = answers.take(bytes, mayExceed: true) else { throw Problem.tooManyAnswers }
    defer { withExtendedLifetime(room) {} }
    do throws(PeerError) {
      let body =
        coding == .frame
        ? try answer.frame(writer) : try coding.encode(answer.message, writer)
      return Reply(body, coding)
    } catch {
      throw Problem(.failed, "the answer cannot be written: " + error.message)
    }
  }

  private static func attempt<R>(_ body: () throws(PeerError) -> R) throws(Problem) -> R {
    do throws(PeerError) { return try body() } catch { throw Problem(error) }
  }

  /// The long poll in a short body, by which a remembered one is found.
  private func knownPull(
    _ body: [UInt8], _ coding: Coding, _ answerCoding: Coding, _ access: SyncAccess,
    _ caller: Caller
  ) -> VainPull.Question? {
    // Longer bodies are not decoded on the event loop.
    guard body.count <= 4096,
      case .pullRequest(let pull)? = try? coding.decode(body, reader), pull.waitMilliseconds > 0
    else { return nil }
    return VainPull.Question(
      caller: caller.id, access: access, coding: answerCoding, request: pull)
  }

  // MARK: Bodies

  /// Reads the body of a request.
  private func collect(
    _ request: Request, _ coding: Coding, _ writer: borrowing ResponseWriter
  ) async throws(Problem) -> Body {
    // A length that overflows `Int` counts as the greatest one.
    let stated = request.headers[.contentLength].map { Int($0) ?? .max }
    guard stated != nil || request.headers[.transferEncoding] != nil else {
      throw Problem(.malformed, "the request has no body", status: .lengthRequired)
    }
    guard (stated ?? 0) <= limits.bodyBytes else { throw Problem.tooLarge(limits.bodyBytes) }
    if request.headers[.expect]?.lowercased() == "100-continue" {
      // If the connection has ended, reading the body throws.
      try? await writer.writeInformationalHead(HTTPResponse(status: .continue))
    }
    var bytes: [UInt8] = []
    var room: [Budget.Part] = []
    do {
      for try await part in request.body {
        guard bytes.count + part.readableBytes <= limits.bodyBytes else {
          throw Problem.tooLarge(limits.bodyBytes)
        }
        guard let taken = bodies.take(part.readableBytes * coding.memoryFactor) else {
          throw Problem(
            .busy, "the server has too many requests now", retryAfter: .seconds(1))
        }
        room.append(taken)
        bytes.append(contentsOf: part.readableBytesView)
      }
    } catch let problem as Problem {
      throw problem
    } catch { throw Problem.cutShort }
    guard stated == nil || stated == bytes.count else { throw Problem.cutShort }
    return Body(bytes, room)
  }
}

extension WireMessage {
  /// The replica that makes a request.
  fileprivate var replica: ReplicaID? {
    switch self {
    case .helloRequest(let request): request.replica
    case .pushRequest(let request): request.replica
    case .pullRequest(let request): request.replica
    case .valuesRequest(let request): request.replica
    case .digestRequest(let request): request.replica
    case .attachRequest(let request): request.replica
    case .fetchRequest(let request): request.replica
    default: nil
    }
  }

  /// Bytes of an answer's keys, values and contents; everything else in it is small.
  fileprivate var contentBytes: Int {
    func sum(_ entries: [FeedEntry]) -> Int {
      entries.reduce(0) { $0 + $1.key.count + $1.content.value.count }
    }
    return switch self {
    case .pullAnswer(let answer): sum(answer.entries)
    case .valuesAnswer(let answer): sum(answer.entries)
    case .fetchAnswer(let answer): answer.bytes?.count ?? 0
    default: 0
    }
  }
}

extension StagedAnswer {
  /// Whether it is a page without entries.
  fileprivate var isEmptyPage: Bool {
    if case .pullAnswer(let page) = message { page.entries.isEmpty } else { false }
  }

  /// The cursor of an empty page that has reached the end of the feed; nil for any other answer.
  var end: FeedPosition? {
    guard case .pullAnswer(let page) = message, page.entries.isEmpty,
      page.cursor.offset >= page.range.head
    else { return nil }
    return page.cursor
  }
}

extension WireMessage.Kind {
  /// The lane of its work in the pool.
  fileprivate var lane: WorkPool.Lane {
    switch self {
    case .pullRequest: .pulls
    case .digestRequest: .digests
    default: .calls
    }
  }
}
