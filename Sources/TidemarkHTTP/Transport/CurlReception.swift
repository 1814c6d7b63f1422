#if !canImport(Darwin) && (canImport(Glibc) || canImport(Musl))
  internal import TidemarkEngine
  internal import TidemarkSyncProtocol

  /// A request in the form that libcurl takes.
  struct CurlMessage: Sendable {
    let method: String
    let url: String
    /// Lines that each end with a zero byte, and another zero at the end.
    let headers: [CChar]
    let body: [UInt8]

    init(_ request: HTTPTransportRequest) throws(PeerError) {
      let request = try request.checked()
      var headers: [UInt8] = []
      for (name, value) in request.headers.sorted(by: { $0.key < $1.key }) {
        // libcurl sends a field without value only if it ends with a semicolon.
        let line = value.isEmpty ? "\(name);" : "\(name): \(value)"
        headers.append(contentsOf: Array(line.utf8) + [0])
      }
      headers.append(0)
      self.headers = headers.map { CChar(bitPattern: $0) }
      method = request.method
      url = request.url
      body = request.body
    }

    var isHead: Bool { method == "HEAD" }

    /// Whether it is sent over TLS.
    var isSecure: Bool { url.lowercased().hasPrefix("https:") }
  }

  /// Passes a response on to a receiver, from the lines and pieces that libcurl delivers.
  ///
  /// It is used on one thread at a time.
  final class CurlReception: Sendable {
    private struct State {
      var lines: HeadLines
      var error: (any Error)?
    }

    private let state: Lock<State>
    private let head: @Sendable (HTTPTransportAnswer) throws -> Void
    private let body: @Sendable ([UInt8]) throws -> Void

    init(
      isHead: Bool, head: @escaping @Sendable (HTTPTransportAnswer) throws -> Void,
      body: @escaping @Sendable ([UInt8]) throws -> Void
    ) {
      state = Lock(State(lines: HeadLines(isHead: isHead)))
      self.head = head
      self.body = body
    }

    /// The error that the receiver has thrown.
    var error: (any Error)? { state.withLock { $0.error } }

    /// - Returns: whether to go on.
    func take(line bytes: [UInt8]) -> Bool {
      keepError {
        let answer = try state.withLock { try $0.lines.take(bytes) }
        if let answer { try head(answer) }
      }
    }

    /// - Returns: whether to go on.
    func take(body bytes: [UInt8]) -> Bool {
      keepError {
        guard state.withLock({ $0.lines.isWhole }) else { throw HeadLines.noAnswer }
        try body(bytes)
      }
    }

    /// - Parameter isEndTold: whether the connection's end counts as the end of a body.
    /// - Throws: when the response is not complete.
    func finish(isEndTold: Bool) throws {
      let lines = state.withLock { $0.lines }
      guard lines.isWhole else { throw HeadLines.noAnswer }
      guard isEndTold || !lines.endsWithConnection else { throw HTTPTransportAnswer.untoldEnd }
    }

    private func keepError(_ part: () throws -> Void) -> Bool {
      do {
        try part()
        return true
      } catch {
        state.withLock { $0.error = error }
        return false
      }
    }
  }
#endif
