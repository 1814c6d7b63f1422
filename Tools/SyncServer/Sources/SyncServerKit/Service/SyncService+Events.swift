internal import HTTPTypes
internal import HummingbirdCore
internal import NIOCore
internal import TidemarkSync

/// An event stream that may begin.
struct EventStream: Sendable {
  let waiter: StreamWaiter
  /// For how long the caller's token is valid still.
  let validFor: Duration?
}

extension SyncService {
  /// Shortest time between two pokes: what comes meanwhile needs no more than one.
  private static let pause = Duration.milliseconds(20)

  /// Makes sure that a caller may have an event stream of a database.
  func stream(
    of name: DatabaseName, _ caller: Caller, replica: String?
  ) async throws(Problem) -> EventStream {
    guard let access = caller.grant.access(to: name) else {
      throw Problem(PeerError(.forbidden, "the token is not for this database"))
    }
    try await countMaking(of: name, caller, access)
    // It has to be there, but need not stay open.
    try await pool.run(name.description) { [self] () throws(Problem) in
      _ = try databases.lease(name, mayCreate: access.canPush)
    }
    // A stream of a replica takes the place of one that nobody may be reading any more.
    let waiter = StreamWaiter(
      caller.id, name, name: replica.map { "\(caller.id)/\(name)/\($0)" })
    guard waiters.add(waiter) else {
      throw Problem(PeerError(.busy, "too many event streams", retryAfter: .seconds(10)))
    }
    endIfReplaced(waiter, caller)
    return EventStream(waiter: waiter, validFor: caller.validFor)
  }

  /// Sends pokes and heartbeats until the caller goes, its token runs out or the server ends.
  func send(
    _ stream: EventStream, _ writer: consuming ResponseWriter, on connection: ConnectionTable.ID
  ) async throws {
    let waiter = stream.waiter
    let heartbeat = Task { [heartbeat] in
      while !Task.isCancelled {
        try await Task.sleep(for: heartbeat)
        waiter.beat()
      }
    }
    let end = Task {
      guard let time = stream.validFor else { return }
      try await Task.sleep(for: time)
      waiter.end()
    }
    metrics.streams(1)
    connections.set(.waiting, connection)
    connections.onHangUp(connection) { waiter.end() }
    defer {
      heartbeat.cancel()
      end.cancel()
      connections.onHangUp(connection, nil)
      waiters.remove(waiter)
      metrics.streams(-1)
    }
    var body = try await writer.writeHead(Self.head)
    // The first poke at once: whoever comes may have missed something.
    waiter.wake()
    for await _ in waiter.wakes {
      let isNews = waiter.takeNews()
      let text = isNews ? "event: poke\ndata: {}\n\n" : ": heartbeat\n\n"
      try await body.write(ByteBuffer(string: text))
      metrics.sent(text.utf8.count)
      if isNews { try await Task.sleep(for: Self.pause) }
    }
    connections.set(.answering, connection)
    try await body.finish(nil)
  }

  private static var head: HTTPResponse {
    var headers = HTTPFields()
    headers[.contentType] = "text/event-stream"
    headers[.cacheControl] = "no-store"
    if let name = HTTPField.Name("X-Accel-Buffering") { headers[name] = "no" }
    return HTTPResponse(status: .ok, headerFields: headers)
  }
}
