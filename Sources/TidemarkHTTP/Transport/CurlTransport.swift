#if os(Linux)
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

    /// A transport with connections of its own.
    /// - Parameter connections: most idle connections that are kept.
    public init(connections: Int = 4) { mostIdle = max(1, connections) }

    deinit { closeAll() }

    public func stream(
      _ request: HTTPTransportRequest,
      head: @escaping @Sendable (HTTPTransportAnswer) throws -> Void,
      body: @escaping @Sendable ([UInt8]) throws -> Void
    ) async throws {
      let message = try CurlMessage(request)
      try Task.checkCancellation()
      let line = try take()
      let outcome = CurlOutcome()
      try await withTaskCancellationHandler {
        try await withCheckedThrowingContinuation { continuation in
          outcome.expect(continuation)
          let reception = CurlReception(isHead: message.isHead, head: head, body: body)
          line.perform(message, reception) { [weak self] result in
            outcome.end(result) {
              // After a failure the connection may be in the middle of a response.
              if case .success = result { self?.giveBack(line) } else { self?.drop(line) }
            }
          }
        }
      } onCancel: {
        // Only if it has not ended: then the line may be in use for another request already.
        outcome.end(.failure(CancellationError())) {
          line.cancel()
          drop(line)
        }
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

    /// Closes connections; running calls fail.
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

  /// Resumes an exchange's caller once, with the outcome that is reported first: its own, or a
  /// cancellation.
  final class CurlOutcome: Sendable {
    private enum State {
      case begun
      case awaited(CheckedContinuation<Void, any Error>)
      case ended(Result<Void, any Error>)
    }

    private let state = Lock(State.begun)

    func expect(_ continuation: CheckedContinuation<Void, any Error>) {
      let result = state.withLock { state -> Result<Void, any Error>? in
        if case .ended(let result) = state { return result }
        state = .awaited(continuation)
        return nil
      }
      if let result { continuation.resume(with: result) }
    }

    /// - Parameter first: called before the caller resumes, only if this outcome is the first.
    func end(_ result: Result<Void, any Error>, first: () -> Void) {
      let before = state.withLock { state in
        defer { if case .ended = state {} else { state = .ended(result) } }
        return state
      }
      switch before {
      case .begun: first()
      case .awaited(let continuation):
        first()
        continuation.resume(with: result)
      case .ended: break
      }
    }
  }
#endif
