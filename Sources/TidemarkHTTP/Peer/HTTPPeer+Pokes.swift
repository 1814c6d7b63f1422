internal import TidemarkEngine
internal import TidemarkSync

extension HTTPPeer {
  /// Tells when the server has something new, by server-sent events.
  ///
  /// The first poke comes when the connection stands: what came before it may have been missed.
  /// The stream ends when the connection breaks or is silent for too long, and at once when the
  /// server has no events; whoever wants more asks for another one after a while.
  public func pokes() -> AsyncStream<Void>? {
    let (pokes, listener) = AsyncStream.makeStream(
      of: Void.self, bufferingPolicy: .bufferingNewest(1))
    let task = Task { [self] in
      // Pokes are a help: that there are none any more is all that needs to be known.
      try? await listen { listener.yield() }
      listener.finish()
    }
    listener.onTermination = { _ in task.cancel() }
    return pokes
  }

  private func listen(_ poke: @escaping @Sendable () -> Void) async throws {
    let first = try await authorizationValue(wasRefused: false)
    do { try await listen(authorization: first, poke) } catch let error as PeerError {
      guard error.kind == .unauthorized, first != nil else { throw error }
      try await listen(authorization: authorizationValue(wasRefused: true), poke)
    }
  }

  private func listen(
    authorization: String?, _ poke: @escaping @Sendable () -> Void
  ) async throws {
    var target = address
    target.path += "/v1/events"
    var headers = ServerAnswer.commonHeaders
    headers["Accept"] = "text/event-stream"
    headers["Authorization"] = authorization
    let request = HTTPTransportRequest(url: target.description, headers: headers)
    let parser = Lock(ServerEventParser())
    let heard = Lock(ContinuousClock.now)
    let (transport, silence) = (transport, options.silence)
    try await withThrowingTaskGroup(of: Void.self) { group in
      defer { group.cancelAll() }
      group.addTask {
        try await transport.stream(request) { head in
          guard head.status == 200,
            head.headers["content-type"].flatMap(HTTPHeaders.mediaType) == "text/event-stream"
          else { throw ServerAnswer.error(head) }
          heard.withLock { $0 = .now }
          poke()
        } body: { bytes in
          heard.withLock { $0 = .now }
          try parser.withLock { (parser: inout ServerEventParser) throws in
            try parser.feed(bytes) { _ in poke() }
          }
        }
      }
      group.addTask {
        while true {
          let deadline = heard.withLock { $0 } + silence
          if deadline <= .now { throw PeerError(.unavailable, "the server is silent") }
          try await Task.sleep(until: deadline)
        }
      }
      try await group.next()
    }
  }
}
