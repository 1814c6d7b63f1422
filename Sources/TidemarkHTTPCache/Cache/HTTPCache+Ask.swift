internal import Tidemark
internal import TidemarkEngine
internal import TidemarkHTTP
internal import TidemarkSyncProtocol

extension HTTPCache {
  // MARK: Beginning

  /// Joins the question that equal requests wait for, or makes one.
  /// - Parameter isApart: whether it is this request's alone.
  func enter(
    _ request: HTTPCacheRequest, _ address: HTTPAddress, isApart: Bool
  ) throws(TidemarkError) -> (question: Question, isFirst: Bool) {
    let stamp = try shelf.stamp(address, request.message.headers)
    if isApart { return (Question(stamp), true) }
    return questions.enter(request.gate) {
      // A question from before something was said, or kept, has nothing for those who ask after.
      guard let asked = $0.stamp else { return false }
      return shelf.isSilent(since: asked, address) && asked.response == stamp.response
    } begin: {
      Question(stamp)
    }
  }

  /// Asks the server, if that is still the next step.
  /// - Returns: false where it is not.
  func begin(
    _ question: Question, _ request: HTTPCacheRequest, _ lesson: Question.Lesson?
  ) throws -> Bool {
    do {
      guard case .ask(let found) = try plan(request, lesson) else {
        questions.close(request.gate, question)
        question.release(.again)
        return false
      }
      start(question, request, found)
      return true
    } catch {
      questions.close(request.gate, question)
      question.release(.again)
      throw error
    }
  }

  /// Most addresses that are asked about behind readers' backs at a time.
  private static let mostRefreshes = 16

  /// Asks a server for which nobody waits, unless that is being done.
  func refresh(_ request: HTTPCacheRequest) {
    guard let address = request.address, takeRefresh(Self.mostRefreshes) else { return }
    guard let (question, isFirst) = try? enter(request, address, isApart: false) else {
      return endRefresh()
    }
    // Another one may have come back between the reader's look and the question.
    guard isFirst, case .serveAndRefresh(let found)? = try? plan(request) else {
      if isFirst {
        questions.close(request.gate, question)
        question.release(.again)
      }
      question.leave()
      return endRefresh()
    }
    question.pipe.close()
    start(question, request, found) { [self] in
      question.leave()
      endRefresh()
    }
  }

  private func start(
    _ question: Question, _ request: HTTPCacheRequest, _ found: ResponseShelf.Found?,
    end: @escaping @Sendable () -> Void = {}
  ) {
    Task {
      let result: Result<(Question.Reply?, Question.Lesson), any Error>
      do { result = .success(try await ask(question, request, found)) } catch {
        result = .failure(error)
      }
      questions.close(request.gate, question)
      question.finish(result)
      end()
    }
  }

  // MARK: Asking

  /// Asks the server, about what is stored where there is something.
  private func ask(
    _ question: Question, _ request: HTTPCacheRequest, _ found: ResponseShelf.Found?
  ) async throws -> (Question.Reply?, Question.Lesson) {
    guard let address = request.address, let stamp = question.stamp else { return (nil, .apart) }
    var asked = ServerQuestion(request, address, found, stamp, now: shelf.now)
    var turn = try await exchange(question, asked)
    if case .confused = turn {
      // Asked without a condition, a server cannot answer with 304.
      asked = ServerQuestion(
        request, address, found, stamp, now: shelf.now, isConditional: false)
      turn = try await exchange(question, asked)
    }
    switch turn {
    case .notModified(let answer):
      guard var stored = asked.stored else { return (nil, .apart) }
      stored.response.freshen(
        answer.headers, requestTime: asked.sent, responseTime: shelf.now)
      count { $0.revalidated += 1 }
      let isKept = await renew(stored, asked)
      let reply = Question.Reply(
        found: stored, forwarded: "fwd=stale; fwd-status=304", setCookies: answer.setCookies)
      return (reply, isKept ? .kept : .apart)
    case .failed(let status):
      guard let stored = asked.stored else { return (nil, .apart) }
      count { $0.staleHits += 1 }
      let reply = Question.Reply(
        found: stored, detail: Self.detail(ofFailure: status),
        forwarded: status == 0 ? "hit" : "fwd=stale; fwd-status=\(status)")
      return (reply, .failed(status))
    case .done(let isKept): return (nil, isKept ? .kept : .apart)
    case .waiting, .passed, .confused: return (nil, .apart)
    }
  }

  /// Sends the request, hands the answer on where it is one for the reader, and keeps it.
  private func exchange(
    _ question: Question, _ asked: ServerQuestion
  ) async throws -> ServerTurn {
    let turn = Lock(ServerTurn.waiting)
    let keeper = ResponseKeeper(shelf.cache.store, policy)
    let stall: @Sendable () -> Void = { [questions] in
      questions.close(asked.request.gate, question)
      question.release(.again)
    }
    do {
      try await question.run { [self] in
        try await transport.stream(asked.message) { answer in
          let next = self.turn(answer, asked)
          turn.withLock { $0 = next }
          guard case .passed(let passed) = next else { return }
          if !passed.isToBeKept, !asked.request.isHead { question.release(.apart) }
          question.pipe.give(passed.head, stall: stall)
        } body: { bytes in
          guard case .passed(let passed) = turn.withLock({ $0 }) else { return }
          if passed.isToBeKept {
            keeper.take(bytes)
            if keeper.hasFailed { question.release(.apart) }
          }
          question.pipe.give(.piece(bytes), stall: stall)
        }
      }
    } catch {
      if case .passed(let passed) = turn.withLock({ $0 }) {
        await keepBeginning(passed, keeper, asked)
        throw error
      }
      keeper.cancel()
      guard (error as? PeerError)?.kind == .unavailable, case .waiting = turn.withLock({ $0 }),
        servesInstead(of: 0, asked.stored, asked.request)
      else { throw error }
      return .failed(0)
    }
    guard case .passed(let passed) = turn.withLock({ $0 }) else { return turn.withLock { $0 } }
    count { $0.misses += 1 }
    return .done(isKept: await keep(passed, keeper, asked))
  }

  // MARK: Keeping

  /// Keeps an answer that has come as a whole, or gives up what it says is out of date.
  private func keep(
    _ passed: ServerTurn.Passed, _ keeper: ResponseKeeper, _ asked: ServerQuestion
  ) async -> Bool {
    if asked.request.isHead { return await compare(passed.response, asked) }
    guard passed.isToBeKept else {
      return await giveUp(upon: passed.status, asked)
    }
    let length = passed.range?.count ?? passed.response.length
    guard let content = keeper.finish(length: length) else {
      count { $0.storeFailures += 1 }
      return false
    }
    let headers = asked.request.message.headers
    return await attempt { () throws(TidemarkError) in
      guard let range = passed.range else {
        var response = passed.response
        response.body = content.bytes
        return try await self.shelf.keep(
          response, content.attachment, of: asked.address, headers, since: asked.stamp)
      }
      return try await self.shelf.keep(
        range, content.bytes, content.attachment, of: passed.response, asked.address, headers,
        since: asked.stamp)
    }
  }

  /// Keeps the beginning of an answer that broke off, where it can be completed later
  /// (RFC 9111, 3.3).
  private func keepBeginning(
    _ passed: ServerTurn.Passed, _ keeper: ResponseKeeper, _ asked: ServerQuestion
  ) async {
    let length = keeper.length
    guard passed.isToBeKept, length > 0, let partial = passed.partial,
      length <= partial.range.count, let content = keeper.finish(length: nil)
    else { return keeper.cancel() }
    let start = partial.range.lowerBound
    _ = await attempt { () throws(TidemarkError) in
      try await self.shelf.keep(
        start..<start + length, content.bytes, content.attachment, of: partial.response,
        asked.address, asked.request.message.headers, since: asked.stamp)
    }
  }

  /// RFC 9111, 4.3.5.
  private func compare(
    _ response: StoredResponse, _ asked: ServerQuestion
  ) async -> Bool {
    guard var stored = asked.stored else { return false }
    // A redirect or an error that is stored is none any more where there is a content now.
    guard response.status == 200, stored.response.status == 200,
      Preconditions.describes(response.headers, stored.response)
    else {
      return await giveUp(upon: response.status, asked)
    }
    stored.response.freshen(
      response.headers, requestTime: response.requestTime, responseTime: response.responseTime)
    return await renew(stored, asked)
  }

  /// Keeps a stored response with fresh fields, of which all rules hold as of a new one.
  private func renew(
    _ stored: ResponseShelf.Found, _ asked: ServerQuestion
  ) async -> Bool {
    guard Storability.allows(stored.response, request: CacheControl(nil)) else {
      return await giveUp(upon: 304, asked)
    }
    // A request that wants nothing kept says nothing of what was kept before.
    guard !asked.request.control.has("no-store") else { return false }
    return await attempt { () throws(TidemarkError) in
      try await self.shelf.renew(
        stored, of: asked.address, asked.request.message.headers, since: asked.stamp)
    }
  }

  /// An answer that must not be kept says all the same that the former one is none any more, unless
  /// something was said since.
  /// - Returns: false: nothing is kept.
  private func giveUp(upon status: Int, _ asked: ServerQuestion) async -> Bool {
    guard asked.stored != nil, Storability.supersedes(status),
      shelf.isSilent(since: asked.stamp, asked.address)
    else { return false }
    return await attempt { () throws(TidemarkError) in
      try await self.shelf.void(asked.address)
      return false
    }
  }

  /// Runs what a reader does not wait for the outcome of: one that fails is counted.
  private func attempt(_ write: () async throws(TidemarkError) -> Bool) async -> Bool {
    do { return try await write() } catch {
      count { $0.storeFailures += 1 }
      return false
    }
  }
}
