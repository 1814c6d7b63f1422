#if !canImport(Darwin) && (canImport(Glibc) || canImport(Musl))
  internal import Tidemark
  internal import TidemarkEngine
  internal import TidemarkSyncProtocol

  /// A transport over libcurl, for Linux.
  ///
  /// Connections are kept and reused; each has a thread that blocks on the network. On Linux
  /// Foundation's `URLSession` uses the same library, but it takes a whole core while it waits for
  /// the response to a request of more than 64 KiB, crashes when a connection breaks within a
  /// response's head, and buffers without bound for a slow reader.
  public final class CurlTransport: HTTPTransport {
    private struct State {
      var isOpen = true
      /// Connections that are not in use, the most recently used last.
      var idle: [CurlLine] = []
      var busy: [ObjectIdentifier: CurlLine] = [:]
    }

    private let mostIdle: Int
    private let state = Lock(State())

    /// Creates a transport with its own connections.
    /// - Parameter connections: the most idle connections that the transport keeps.
    public init(connections: Int = 4) { mostIdle = max(1, connections) }

    deinit { closeAll() }

    /// Sends a request and passes the response on in pieces; see
    /// ``HTTPTransport/stream(_:head:body:)``.
    public func stream(
      _ request: HTTPTransportRequest,
      head: @escaping @Sendable (HTTPTransportAnswer) throws -> Void,
      body: @escaping @Sendable ([UInt8]) throws -> Void
    ) async throws {
      let message = try CurlMessage(request)
      try Task.checkCancellation()
      let line = try take()
      let outcome = Lock<Result<Void, any Error>?>(nil)
      let ended = Signal()
      // Only the first end counts: afterwards the line may be in use for another request.
      let end = { @Sendable [weak self] (result: Result<Void, any Error>) in
        outcome.withLock { outcome in
          guard outcome == nil else { return }
          if case .success = result {
            self?.giveBack(line)
          } else {
            // The connection may be in the middle of a response.
            line.cancel()
            self?.drop(line)
          }
          outcome = result
        }
        ended.raise()
      }
      let reception = CurlReception(isHead: message.isHead, head: head, body: body)
      line.perform(message, reception, end)
      try await withTaskCancellationHandler {
        try await ended.first { outcome.withLock { $0 } }.get()
      } onCancel: {
        end(.failure(CancellationError()))
      }
    }

    private func take() throws -> CurlLine {
      let idle = try state.withLock { state in
        guard state.isOpen else { throw HTTPTransportAnswer.closed }
        let line = state.idle.popLast()
        if let line { state.busy[ObjectIdentifier(line)] = line }
        return line
      }
      if let idle { return idle }
      let line = try CurlLine()
      try state.withLock { state in
        guard state.isOpen else { throw HTTPTransportAnswer.closed }
        state.busy[ObjectIdentifier(line)] = line
      }
      return line
    }

    private func giveBack(_ line: CurlLine) {
      state.withLock { state in
        state.busy[ObjectIdentifier(line)] = nil
        if state.isOpen, state.idle.count < mostIdle { state.idle.append(line) }
      }
    }

    private func drop(_ line: CurlLine) {
      state.withLock { $0.busy[ObjectIdentifier(line)] = nil }
    }

    /// Closes the transport's connections; running calls fail.
    public func close() async { closeAll() }

    private func closeAll() {
      let busy = state.withLock { state in
        state.isOpen = false
        state.idle = []
        return Array(state.busy.values)
      }
      for line in busy { line.cancel() }
    }
  }
#endif
