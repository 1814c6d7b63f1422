#if os(Linux)
  internal import TidemarkEngine
  internal import TidemarkSyncProtocol

  /// Carries requests with libcurl: the transport of Linux.
  ///
  /// Connections are kept and used again; each has a thread of its own, that waits for the network.
  /// Foundation's `URLSession` is over the same library there. But it spends a whole core on
  /// waiting for the answer to a request of more than 64 KiB, ends the process when a connection
  /// breaks within an answer's head, and reads on when nobody takes what it has read.
  public final class CurlTransport: HTTPTransport {
    private struct State {
      var isOpen = true
      /// Connections that nobody uses, the one that was used last at the end.
      var idle: [CurlLine] = []
      var busy: [ObjectIdentifier: CurlLine] = [:]
    }

    private let mostIdle: Int
    private let state = Lock(State())

    /// A transport with connections of its own.
    /// - Parameter connections: most connections that are kept while nobody uses them.
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
              // A line that was cut off half-way is not used again.
              if case .success = result { self?.giveBack(line) } else { self?.drop(line) }
            }
          }
        }
      } onCancel: {
        // Once it has ended the line may be somebody else's.
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

    /// Lets go of connections; calls that are under way fail.
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

  /// Tells the one who waits for an exchange how it has ended: once, and as whoever was first says.
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

    /// - Parameter first: what to do before anybody goes on; only where nobody else has ended it.
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
