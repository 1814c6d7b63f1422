internal import Tidemark
internal import TidemarkEngine
public import TidemarkHTTP
internal import TidemarkSyncProtocol

extension HTTPCache {
  /// Answers a request, from what is stored or from the server, piece by piece.
  /// - Parameters:
  ///   - request: what is asked; its `Cache-Control` field is heeded.
  ///   - head: is called first, with an answer without body. A request that says `only-if-cached`,
  ///     or that comes while the cache is offline, may be answered with 504.
  ///   - body: is called with each piece.
  /// - Throws: what the transport throws, where nothing stored serves instead; `CancellationError`;
  ///   what `head` and `body` throw; `damaged` where a stored body is.
  public func stream(
    _ request: HTTPTransportRequest,
    head: @escaping @Sendable (HTTPTransportAnswer) throws -> Void,
    body: @escaping @Sendable ([UInt8]) throws -> Void
  ) async throws {
    let request = HTTPCacheRequest(request)
    guard request.isCacheable else { return try await forward(request, head, body) }
    var wasAtGate = false
    while true {
      switch try plan(request) {
      case .refuse(let reason):
        try head(Self.timeout(reason))
        return
      case .serve(let found, let freshness):
        guard let reader = try content(of: found) else { break }
        count { if freshness.isFresh { $0.hits += 1 } else { $0.staleHits += 1 } }
        return try deliver(found, reader, request, freshness.isFresh ? "" : "stale", head, body)
      case .serveAndRefresh(let found, _):
        guard let reader = try content(of: found) else { break }
        count { $0.staleHits += 1 }
        refresh(request)
        return try deliver(found, reader, request, "stale-while-revalidate", head, body)
      case .ask(let found):
        // A request that was at its gate once and found nothing of use there is sent.
        guard !wasAtGate else { return try await ask(request, found, head: head, body: body) }
        wasAtGate = true
        guard try await gates.enter(request.gate) else {
          count { $0.shared += 1 }
          continue
        }
        defer { gates.leave(request.gate) }
        // An answer may have come, and its gate been left, between the look and the gate.
        guard case .ask(let found) = try plan(request) else { continue }
        return try await ask(request, found, head: head, body: body)
      }
      // A body that was taken away leaves nothing to serve.
      if let address = request.address { try await shelf.void(address) }
    }
  }

  /// The body of a stored response.
  enum Content {
    case bytes([UInt8])
    case attachment(AttachmentReader)
  }

  /// - Returns: nil where the body is not here any more.
  func content(of found: ResponseShelf.Found) throws(TidemarkError) -> Content? {
    guard found.attachment != nil else { return .bytes(found.response.body) }
    return try shelf.body(of: found).map { .attachment($0) }
  }

  /// Answers with what is stored (RFC 9111, 4).
  func deliver(
    _ found: ResponseShelf.Found, _ content: Content, _ request: HTTPCacheRequest, _ detail: String,
    _ head: (HTTPTransportAnswer) throws -> Void, _ body: ([UInt8]) throws -> Void,
    forwarded: String? = nil
  ) throws {
    let response = found.response
    let freshness = Freshness(response, now: shelf.now)
    var answer = HTTPTransportAnswer(status: response.status, headers: response.headers)
    answer.headers["age"] = "\(freshness.age)"
    var note = forwarded ?? "hit; ttl=\(freshness.lifetime - freshness.age)"
    if !detail.isEmpty { note += "; detail=\(detail)" }
    answer.note(note)
    if Preconditions.isMet(by: response, request.message.headers) {
      answer.status = 304
      answer.headers["content-length"] = nil
      return try head(answer)
    }
    try head(answer)
    if request.isHead { return }
    switch content {
    case .bytes(let bytes): if !bytes.isEmpty { try body(bytes) }
    case .attachment(let reader): try reader.forEachChunk(body)
    }
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
    _ request: HTTPCacheRequest, _ head: @escaping @Sendable (HTTPTransportAnswer) throws -> Void,
    _ body: @escaping @Sendable ([UInt8]) throws -> Void
  ) async throws {
    guard isOnline else { return try head(Self.timeout("offline")) }
    count { $0.bypassed += 1 }
    let voided = Lock<[HTTPAddress]>([])
    let result: Result<Void, any Error>
    do {
      try await transport.stream(request.message) { answer in
        if !request.isSafe { voided.withLock { $0 = Self.changed(request, answer) } }
        var answer = answer
        answer.note(request.isSafe ? "fwd=request" : "fwd=method")
        try head(answer)
      } body: {
        try body($0)
      }
      result = .success(())
    } catch { result = .failure(error) }
    // It has happened even where the answer breaks off.
    for address in voided.withLock({ $0 }) { try await shelf.void(address) }
    try result.get()
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
  /// Says where the answer came from (RFC 9211), behind what caches on the way have said.
  mutating func note(_ text: String) {
    let note = "Tidemark; \(text)"
    headers["cache-status"] = headers["cache-status"].map { "\($0), \(note)" } ?? note
  }
}
