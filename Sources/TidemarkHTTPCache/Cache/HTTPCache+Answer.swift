internal import Tidemark
internal import TidemarkEngine
public import TidemarkHTTP
internal import TidemarkSyncProtocol

extension HTTPCache {
  /// Answers a request from the cache or the server and passes the response on in pieces, as a
  /// transport; see ``respond(to:head:body:)`` for readers that are slow.
  public func stream(
    _ request: HTTPTransportRequest,
    head: @escaping @Sendable (HTTPTransportAnswer) throws -> Void,
    body: @escaping @Sendable ([UInt8]) throws -> Void
  ) async throws {
    try await respond(to: request, head: head, body: body)
  }

  /// Answers a request from the cache or from the server, piece by piece.
  ///
  /// The cache passes on the next piece once `body` has returned. A slow reader blocks no thread,
  /// and does not delay other readers of the same response.
  /// - Parameters:
  ///   - request: the request; the cache follows its `Cache-Control` field.
  ///   - head: called first, with a response without body. The response may be 504 if the request
  ///     says `only-if-cached` or the cache is offline.
  ///   - body: called with each piece of the body.
  /// - Throws: the transport's errors if no stored response can replace the server's;
  ///   `CancellationError`; the errors of `head` and `body`; `damaged` if a stored body is damaged.
  public func respond(
    to request: HTTPTransportRequest,
    head: @Sendable (HTTPTransportAnswer) async throws -> Void,
    body: @Sendable ([UInt8]) async throws -> Void
  ) async throws {
    let request = HTTPCacheRequest(request)
    guard request.isCacheable, let address = request.address else {
      return try await forward(request, head, body)
    }
    var lesson: Question.Lesson?
    while true {
      switch try plan(request, lesson) {
      case .refuse(let reason): return try await head(Self.timeout(reason))
      case .serve(let found, let detail, let refreshes):
        count { if detail.isEmpty { $0.hits += 1 } else { $0.staleHits += 1 } }
        if refreshes { refresh(request) }
        return try await deliver(.init(found: found, detail: detail), request, head, body)
      case .ask:
        let isApart = if case .apart = lesson { true } else { false }
        let (question, isFirst) = try enter(request, address, isApart: isApart)
        defer { question.leave() }
        guard isFirst else {
          count { $0.shared += 1 }
          lesson = try await question.lesson()
          continue
        }
        start(question, request, lesson)
        switch try await read(question, head, body) {
        case .passed: return
        case .stored(let reply): return try await deliver(reply, request, head, body)
        case .needless: continue
        }
      }
    }
  }

  /// Hands on what comes to a question.
  private func read(
    _ question: Question, _ head: @Sendable (HTTPTransportAnswer) async throws -> Void,
    _ body: @Sendable ([UInt8]) async throws -> Void
  ) async throws -> Question.End {
    try await question.read { part in
      switch part {
      case .head(let answer): try await head(answer)
      case .stored(let content, let range): try await content.forEach(in: range, body)
      case .piece(let bytes): try await body(bytes)
      }
    }
  }

  /// Answers with what is stored (RFC 9111, 4), or with the part of it that is asked for.
  private func deliver(
    _ reply: Question.Reply, _ request: HTTPCacheRequest,
    _ head: (HTTPTransportAnswer) async throws -> Void, _ body: ([UInt8]) async throws -> Void
  ) async throws {
    let found = reply.found
    let (response, content) = (found.response, found.content)
    let freshness = Freshness(response, now: shelf.now)
    var answer = HTTPTransportAnswer(status: response.status, headers: response.headers)
    answer.setCookies = reply.setCookies
    answer.headers["age"] = "\(freshness.age)"
    var note = reply.forwarded ?? "hit; ttl=\(freshness.lifetime - freshness.age)"
    if !reply.detail.isEmpty { note += "; detail=\(reply.detail)" }
    answer.note(note)
    if Preconditions.isMet(by: response, request.message.headers) {
      answer.status = 304
      answer.headers["content-length"] = nil
      return try await head(answer)
    }
    guard let bytes = request.bytes(of: found) else {
      answer.status = 416
      answer.headers["content-range"] = "bytes */\(content.total)"
      answer.headers["content-length"] = "0"
      return try await head(answer)
    }
    // A range that is not here as a whole is served as far as it is.
    let end = min(bytes.upperBound, content.end(from: bytes.lowerBound))
    if request.range(of: response) != nil {
      answer.tellRange(bytes.lowerBound..<end, of: content.total)
    }
    try await head(answer)
    if !request.isHead { try await content.forEach(in: bytes.lowerBound..<end, body) }
  }

  /// RFC 9111, 5.2.1.7.
  private static func timeout(_ reason: String) -> HTTPTransportAnswer {
    var answer = HTTPTransportAnswer(status: 504, headers: ["content-length": "0"])
    answer.note("detail=\(reason)")
    return answer
  }

  // MARK: Passing on

  /// Hands a request on that is not the cache's to answer, and gives up what it changes
  /// (RFC 9111, 4.4).
  private func forward(
    _ request: HTTPCacheRequest, _ head: @Sendable (HTTPTransportAnswer) async throws -> Void,
    _ body: @Sendable ([UInt8]) async throws -> Void
  ) async throws {
    guard isOnline else { return try await head(Self.timeout("offline")) }
    count { $0.bypassed += 1 }
    let question = Question(nil)
    defer { question.leave() }
    Task {
      do {
        try await pass(request, to: question)
        question.finish(.success((.passed, .apart)))
      } catch { question.finish(.failure(error)) }
    }
    _ = try await read(question, head, body)
  }

  private func pass(_ request: HTTPCacheRequest, to question: Question) async throws {
    let voided = Lock<[HTTPAddress]>([])
    var failure: (any Error)?
    do {
      try await question.run { [self] in
        try await transport.stream(request.message) { answer in
          if !request.isSafe { voided.withLock { $0 = Self.changed(request, answer) } }
          var answer = answer
          answer.note(request.bypass)
          question.give(.head(answer))
        } body: {
          question.give(.piece($0))
        }
      }
    } catch { failure = error }
    // It has happened even where the answer breaks off.
    for address in voided.withLock({ $0 }) { try await shelf.void(address) }
    if let failure { throw failure }
  }

  /// The addresses whose responses are void after a request that was not safe.
  private static func changed(
    _ request: HTTPCacheRequest, _ answer: HTTPTransportAnswer
  ) -> [HTTPAddress] {
    guard (200..<400).contains(answer.status), let address = request.address else { return [] }
    let others = ["location", "content-location"].compactMap { name in
      // Nobody says what becomes of another server's.
      answer.headers[name].flatMap { address.redirected(to: $0) }
    }
    return [address] + others
  }
}

extension HTTPTransportAnswer {
  /// Says that a part of a content is the answer (RFC 9110, 15.3.7).
  mutating func tellRange(_ range: Range<Int>, of total: Int) {
    status = 206
    headers["content-range"] = "bytes \(range.httpText)/\(total)"
    headers["content-length"] = "\(range.count)"
  }

  /// Says where the answer came from (RFC 9211), behind what caches on the way have said.
  mutating func note(_ text: String) {
    let note = "Tidemark; \(text)"
    headers["cache-status"] = headers["cache-status"].map { "\($0), \(note)" } ?? note
  }
}
