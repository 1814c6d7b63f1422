internal import Tidemark
internal import TidemarkEngine
internal import TidemarkHTTP
internal import TidemarkSyncProtocol

extension HTTPCache {
  typealias Head = @Sendable (HTTPTransportAnswer) throws -> Void
  typealias Body = @Sendable ([UInt8]) throws -> Void

  /// The turn that the head of a server's answer gives the exchange.
  private enum Turn: Sendable {
    case waiting
    /// The answer is handed on.
    case passed(StoredResponse, keeps: Bool)
    /// The stored response is still right.
    case notModified([String: String], at: Int64)
    /// The stored response serves in place of an error.
    case failed(Int)
    /// The server speaks of another response than the one that it was asked about.
    case confused
  }

  /// Asks the server, about what is stored where there is something.
  func ask(
    _ request: HTTPCacheRequest, _ found: ResponseShelf.Found?, head: @escaping Head,
    body: @escaping Body
  ) async throws {
    guard let address = request.address else { return }
    let voids = shelf.begin(address)
    defer { shelf.end(address) }
    let content = try found.flatMap { (found) throws(TidemarkError) in try self.content(of: found) }
    let stored = content == nil ? nil : found
    switch try await exchange(request, stored, voids, head, body) {
    case .confused:
      // Asked without a condition, a server cannot answer with 304.
      _ = try await exchange(request, nil, voids, head, body)
    case .notModified(let fields, let time):
      guard var stored, let content else { return }
      stored.response.freshen(
        fields, requestTime: min(time, shelf.now), responseTime: shelf.now)
      await attempt { () throws(TidemarkError) in
        try await self.shelf.freshen(stored, of: address, voids: voids)
      }
      count { $0.revalidated += 1 }
      try deliver(
        stored, content, request, "", head, body, forwarded: "fwd=stale; fwd-status=304")
    case .failed(let status):
      guard let stored, let content else { return }
      count { $0.staleHits += 1 }
      try deliver(
        stored, content, request, status == 0 ? "unreachable" : "stale-if-error", head, body,
        forwarded: status == 0 ? "hit" : "fwd=stale; fwd-status=\(status)")
    case .waiting, .passed: break
    }
  }

  /// Sends the request, and hands the answer on where it is one for the reader.
  private func exchange(
    _ request: HTTPCacheRequest, _ stored: ResponseShelf.Found?, _ voids: Int,
    _ head: @escaping Head, _ body: @escaping Body
  ) async throws -> Turn {
    var message = request.message
    // A `HEAD` is sent without conditions: its answer is compared (RFC 9111, 4.3.5).
    if let stored, !request.isHead {
      message.headers = Preconditions.adding(of: stored.response, to: message.headers)
    }
    let sent = shelf.now
    let turn = Lock(Turn.waiting)
    let keeper = ResponseKeeper(shelf.cache.store, policy)
    do {
      try await transport.stream(message) { [self] answer in
        let next = self.turn(answer, request, stored, sent)
        turn.withLock { $0 = next }
        guard case .passed(_, let keeps) = next else { return }
        var answer = answer
        let forwarded = stored == nil ? "fwd=uri-miss" : "fwd=stale"
        answer.note("\(forwarded); fwd-status=\(answer.status)\(keeps ? "; stored" : "")")
        try head(answer)
      } body: { bytes in
        guard case .passed(_, let keeps) = turn.withLock({ $0 }) else { return }
        if keeps { keeper.take(bytes) }
        try body(bytes)
      }
    } catch let error as PeerError where error.kind == .unavailable {
      keeper.cancel()
      guard case .waiting = turn.withLock({ $0 }), servesInstead(of: nil, stored, request) else {
        throw error
      }
      return .failed(0)
    }
    let end = turn.withLock { $0 }
    if case .passed(let response, let keeps) = end {
      count { $0.misses += 1 }
      await conclude(response, keeps ? keeper : nil, request, stored, voids)
    }
    if case .notModified(let fields, _) = end { return .notModified(fields, at: sent) }
    return end
  }

  /// The meaning of the head of an answer.
  private func turn(
    _ answer: HTTPTransportAnswer, _ request: HTTPCacheRequest, _ stored: ResponseShelf.Found?,
    _ sent: Int64
  ) -> Turn {
    if answer.status == 304, let stored, !request.isHead {
      if Preconditions.selects(answer.headers, stored.response) {
        return .notModified(answer.headers, at: sent)
      }
      // The reader's own condition may be what was met.
      let asked = ["if-none-match", "if-modified-since"].contains {
        request.message.headers[$0] != nil
      }
      if !asked { return .confused }
    }
    if answer.status >= 500, servesInstead(of: answer.status, stored, request) {
      return .failed(answer.status)
    }
    let response = StoredResponse(
      status: answer.status, headers: StoredResponse.storable(answer.headers), requestTime: sent,
      responseTime: shelf.now)
    let keeps = !request.isHead && Storability.allows(response, request: request.control)
    return .passed(response, keeps: keeps)
  }

  /// Keeps an answer that was handed on whole, or gives up what it says is out of date.
  private func conclude(
    _ response: StoredResponse, _ keeper: ResponseKeeper?, _ request: HTTPCacheRequest,
    _ stored: ResponseShelf.Found?, _ voids: Int
  ) async {
    guard let address = request.address else { return }
    if request.isHead { return await compare(response, stored, address, voids) }
    guard let keeper else {
      // An answer that must not be kept says all the same that the former one is none any more.
      guard stored != nil, [200, 203, 204, 404, 410].contains(response.status) else { return }
      return await attempt { () throws(TidemarkError) in try await self.shelf.void(address) }
    }
    guard let content = keeper.finish(length: response.length) else {
      return count { $0.storeFailures += 1 }
    }
    var response = response
    response.body = content.bytes
    let whole = response
    await attempt { () throws(TidemarkError) in
      try await self.shelf.keep(
        whole, content.attachment, of: address, request.message.headers, voids: voids)
    }
  }

  /// RFC 9111, 4.3.5.
  private func compare(
    _ response: StoredResponse, _ stored: ResponseShelf.Found?, _ address: HTTPAddress,
    _ voids: Int
  ) async {
    guard var stored, response.status == 200 else { return }
    guard Preconditions.describes(response.headers, stored.response) else {
      return await attempt { () throws(TidemarkError) in try await self.shelf.void(address) }
    }
    stored.response.freshen(
      response.headers, requestTime: response.requestTime, responseTime: response.responseTime)
    let fresher = stored
    await attempt { () throws(TidemarkError) in
      try await self.shelf.freshen(fresher, of: address, voids: voids)
    }
  }

  /// Runs what a reader does not wait for the outcome of: one that fails is counted.
  private func attempt(_ write: () async throws(TidemarkError) -> Void) async {
    do { try await write() } catch { count { $0.storeFailures += 1 } }
  }
}
