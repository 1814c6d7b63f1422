#if os(Linux)
  internal import TidemarkEngine
  internal import TidemarkSyncProtocol

  /// A request as libcurl takes it.
  struct CurlMessage: Sendable {
    let method: String
    let url: String
    /// Lines with a zero behind each, and another one at the end.
    let headers: [CChar]
    let body: [UInt8]

    /// - Throws: ``PeerError`` for what would be another request than the one that was meant.
    init(_ request: HTTPTransportRequest) throws(PeerError) {
      var headers: [UInt8] = []
      for (name, value) in request.headers.sorted(by: { $0.key < $1.key }) {
        // A name with nothing behind its colon would be left out.
        let line = value.isEmpty ? "\(name);" : "\(name): \(value)"
        try Self.check(line, "a header")
        headers.append(contentsOf: Array(line.utf8) + [0])
      }
      try Self.check(request.url, "the address")
      try Self.check(request.method, "the method")
      headers.append(0)
      self.headers = headers.map { CChar(bitPattern: $0) }
      method = request.method
      url = request.url
      body = request.method == "GET" || request.method == "HEAD" ? [] : request.body
    }

    private static func check(_ text: String, _ what: String) throws(PeerError) {
      for byte in text.utf8 where byte < 0x20 || byte == 0x7f {
        throw PeerError(.failed, "\(what) has a control character")
      }
      guard !text.isEmpty else { throw PeerError(.failed, "\(what) is empty") }
    }
  }

  /// Puts the head of an answer together, line by line, and hands the answer on.
  ///
  /// It is used on one thread at a time.
  final class CurlReception: Sendable {
    private struct State {
      var head: HTTPTransportAnswer?
      var isBody = false
      var error: (any Error)?
    }

    private let state = Lock(State())
    private let head: @Sendable (HTTPTransportAnswer) throws -> Void
    private let body: @Sendable ([UInt8]) throws -> Void

    init(
      head: @escaping @Sendable (HTTPTransportAnswer) throws -> Void,
      body: @escaping @Sendable ([UInt8]) throws -> Void
    ) {
      self.head = head
      self.body = body
    }

    /// The error that the receiver has thrown.
    var error: (any Error)? { state.withLock { $0.error } }

    /// - Returns: whether to go on.
    func take(line bytes: [UInt8]) -> Bool {
      keepError {
        let line = bytes.filter { $0 != 0x0a && $0 != 0x0d }
        let answer = state.withLock { state -> HTTPTransportAnswer? in
          // Trailers come behind the body.
          guard !state.isBody else { return nil }
          guard line.isEmpty else {
            Self.add(line, to: &state.head)
            return nil
          }
          // An interim answer is none.
          guard let head = state.head, head.status >= 200 else { return nil }
          state.isBody = true
          return head
        }
        if let answer { try head(answer) }
      }
    }

    /// - Returns: whether to go on.
    func take(body bytes: [UInt8]) -> Bool {
      keepError { try body(bytes) }
    }

    /// - Throws: when no answer has come.
    func finish() throws {
      guard state.withLock({ $0.isBody }) else {
        throw PeerError(.unavailable, "the server closed the connection without an answer")
      }
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

    private static func add(_ line: [UInt8], to head: inout HTTPTransportAnswer?) {
      if line.starts(with: Array("HTTP/".utf8)) {
        let words = line.split(separator: 0x20)
        let status = words.count > 1 ? Int(String(decoding: words[1], as: UTF8.self)) : nil
        head = HTTPTransportAnswer(status: status ?? 0)
        return
      }
      guard let colon = line.firstIndex(of: 0x3a) else { return }
      let name = String(decoding: line[..<colon], as: UTF8.self).lowercased()
      let blanks: [UInt8] = [0x20, 0x09]
      var value = line[(colon + 1)...]
      while let first = value.first, blanks.contains(first) { value.removeFirst() }
      while let last = value.last, blanks.contains(last) { value.removeLast() }
      let text = String(decoding: value, as: UTF8.self)
      let former = head?.headers[name]
      head?.headers[name] = former.map { "\($0), \(text)" } ?? text
    }
  }
#endif
