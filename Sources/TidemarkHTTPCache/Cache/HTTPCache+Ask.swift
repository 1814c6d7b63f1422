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

  /// Asks a server for which nobody waits, unless that is being done.
  func refresh(_ request: HTTPCacheRequest) {
    guard let address = request.address, takeRefresh() else { return }
    guard let (question, isFirst) = try? enter(request, address, isApart: false) else {
      return endRefresh()
    }
    let end: @Sendable () -> Void = { [self] in
      question.leave()
      endRefresh()
    }
    guard isFirst else { return end() }
    question.endReading()
    start(question, request, isRefresh: true, end: end)
  }

  func start(
    _ question: Question, _ request: HTTPCacheRequest, _ lesson: Question.Lesson? = nil,
    isRefresh: Bool = false, end: @escaping @Sendable () -> Void = {}
  ) {
    Task {
      do {
        question.finish(.success(try await ask(question, request, lesson, isRefresh)))
      } catch { question.finish(.failure(error)) }
      questions.close(request.gate, question)
      end()
    }
  }

  // MARK: Asking

  /// Asks the server, about what is stored where there is something.
  private func ask(
    _ question: Question, _ request: HTTPCacheRequest, _ lesson: Question.Lesson?,
    _ isRefresh: Bool
  ) async throws -> (Question.End, Question.Lesson) {
    guard let address = request.address, let stamp = question.stamp else {
      return (.passed, .apart)
    }
    let found: ResponseStore.Found?
    switch try plan(request, lesson) {
    case .ask(let stored): found = stored
    case .serve(let stored, _, refreshes: true) where isRefresh: found = stored
    // Another answer has come between the look and the question.
    case .serve, .refuse: return (.needless, .again)
    }
    let asked = ServerQuestion(request, address, found, stamp, now: shelf.now)
    if let end = try await exchange(question, asked) { return end }
    // Asked without a condition, a server cannot answer with 304.
    let anew = ServerQuestion(
      request, address, found, stamp, now: shelf.now, isConditional: false)
    return try await exchange(question, anew) ?? (.passed, .apart)
  }

  /// Sends the request, hands the answer on where it is one for the reader, and keeps it.
  /// - Returns: nil where the server speaks of another response than it was asked about.
  private func exchange(
    _ question: Question, _ asked: ServerQuestion
  ) async throws -> (Question.End, Question.Lesson)? {
    let turn = Lock(ServerTurn.waiting)
    let keeper = ResponseKeeper(shelf.cache.store, policy)
    var failure: (any Error)?
    do {
      try await question.run { [self] in
        try await transport.stream(asked.message) { answer in
          let next = self.turn(answer, asked)
          turn.withLock { $0 = next }
          guard case .passed(let passed) = next else { return }
          if !passed.isToBeKept, !asked.request.isHead { question.release(.apart) }
          question.give(.head(passed.head))
          if let (content, range) = passed.before { question.give(.stored(content, range)) }
        } body: { bytes in
          guard case .passed(let passed) = turn.withLock({ $0 }) else { return }
          if passed.isToBeKept {
            keeper.take(bytes)
            if keeper.hasFailed { question.release(.apart) }
          }
          question.give(.piece(bytes))
        }
      }
    } catch { failure = error }
    switch turn.withLock({ $0 }) {
    case .passed(let passed):
      let isKept = await keep(passed, keeper, asked, isWhole: failure == nil)
      if let failure { throw failure }
      count { $0.misses += 1 }
      return (.passed, isKept ? .kept : .apart)
    case .waiting:
      guard let failure else { return (.passed, .apart) }
      guard (failure as? PeerError)?.kind == .unavailable, let stored = asked.stored,
        servesInstead(of: 0, stored, asked.request)
      else { throw failure }
      return answered(insteadOf: 0, stored)
    case .failed(let status, let stored):
      if let failure { throw failure }
      return answered(insteadOf: status, stored)
    case .notModified(let answer, var stored):
      if let failure { throw failure }
      stored.response.freshen(answer.headers, requestTime: asked.sent, responseTime: shelf.now)
      count { $0.revalidated += 1 }
      let isKept = await renew(stored, asked)
      let reply = Question.Reply(
        found: stored, forwarded: "fwd=stale; fwd-status=304", setCookies: answer.setCookies)
      return (.stored(reply), isKept ? .kept : .apart)
    case .confused:
      if let failure { throw failure }
      return nil
    }
  }

  /// - Parameter status: the server's failure; 0 where it cannot be reached.
  private func answered(
    insteadOf status: Int, _ stored: ResponseStore.Found
  ) -> (Question.End, Question.Lesson) {
    count { $0.staleHits += 1 }
    let reply = Question.Reply(
      found: stored, detail: Self.detail(ofFailure: status),
      forwarded: status == 0 ? "hit" : "fwd=stale; fwd-status=\(status)")
    return (.stored(reply), .failed(status))
  }

  // MARK: Keeping

  /// Keeps an answer, or gives up what it says is out of date. Of one that broke off the beginning
  /// is kept where it can be completed later (RFC 9111, 3.3).
  private func keep(
    _ passed: ServerTurn.Passed, _ keeper: ResponseKeeper, _ asked: ServerQuestion, isWhole: Bool
  ) async -> Bool {
    let came = keeper.length
    guard isWhole || came > 0 && came <= passed.range?.count ?? 0 else { return false }
    if asked.request.isHead { return await compare(passed.response, asked) }
    guard passed.isToBeKept else { return await giveUp(upon: passed.status, asked) }
    let length = passed.range?.count ?? passed.response.length
    guard let content = keeper.finish(length: isWhole ? length : nil) else {
      count { $0.storeFailures += 1 }
      return false
    }
    let headers = asked.request.message.headers
    return await attempt { () throws(TidemarkError) in
      guard let start = passed.range?.lowerBound, !isWhole || passed.status == 206 else {
        var response = passed.response
        response.body = content.bytes
        return try await self.shelf.keep(
          response, content.attachment, of: asked.address, headers, since: asked.stamp)
      }
      return try await self.shelf.keep(
        start..<start + came, content.bytes, content.attachment, of: passed.response,
        asked.address, headers, since: asked.stamp)
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
    _ stored: ResponseStore.Found, _ asked: ServerQuestion
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
