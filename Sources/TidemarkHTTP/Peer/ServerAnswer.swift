internal import TidemarkEngine
internal import TidemarkSyncProtocol

/// Turns an HTTP response into a message or an error; only here status codes are interpreted.
enum ServerAnswer {
  /// Most requests of one call, counting those that follow redirects.
  static let mostRequests = 4

  /// The headers that all requests have.
  static let commonHeaders = [
    "Accept-Encoding": "identity", "Cache-Control": "no-store", "User-Agent": "tidemark",
  ]

  /// The message in a response.
  /// - Throws: the `PeerError` that the server sent, or the one that its status means.
  static func message(
    in answer: HTTPTransportAnswer, _ coder: WireCoder,
    now: Int64 = SystemClock().now().seconds
  ) throws(PeerError) -> WireMessage {
    let isFrame =
      answer.headers["content-type"].flatMap(HTTPHeaders.mediaType) == WireFrame.contentType
    guard answer.status == 200, isFrame else {
      let said = isFrame ? try? coder.decode(answer.body) : nil
      throw error(answer, said, now: now)
    }
    guard isIdentity(answer) else {
      throw PeerError(.unavailable, "something on the way has changed the server's answer")
    }
    let message = try coder.decode(answer.body)
    if case .error(let said) = message { throw said }
    return message
  }

  /// The error for a response other than a message with 200.
  static func error(
    _ answer: HTTPTransportAnswer, _ said: WireMessage? = nil,
    now: Int64 = SystemClock().now().seconds
  ) -> PeerError {
    let retryAfter = answer.headers["retry-after"].flatMap {
      HTTPHeaders.retryAfter($0, now: now).map { Duration.seconds($0) }
    }
    if case .error(var error)? = said {
      error.retryAfter = error.retryAfter ?? retryAfter
      return error
    }
    let kind = kind(ofStatus: answer.status)
    var text = "something on the way answers with status \(answer.status)"
    if let location = answer.headers["location"], (300..<400).contains(answer.status) {
      text += ", which leads to \(location.prefix(200))"
    } else if answer.status == 200 {
      text = "the answer is not that of a sync server; is there a login page on the way?"
    }
    return PeerError(kind, text, retryAfter: retryAfter)
  }

  /// The error for a status without a message. Such a response may be a proxy's or a login page's,
  /// so no status means `unauthorized` or `cursorGone`, which would stop or restart replication.
  static func kind(ofStatus status: Int) -> PeerError.Kind {
    switch status {
    case 400, 413, 415: .malformed
    case 429: .busy
    case 401, 407, 408, 502, 503, 504, 511: .unavailable
    case 200..<400: .unavailable
    default: .failed
    }
  }

  /// The target of a redirect that keeps the method and the server; nil for any other answer.
  static func redirect(
    _ answer: HTTPTransportAnswer, from address: HTTPAddress
  ) -> HTTPAddress? {
    guard answer.status == 307 || answer.status == 308, let location = answer.headers["location"]
    else { return nil }
    return address.redirected(to: location)
  }

  private static func isIdentity(_ answer: HTTPTransportAnswer) -> Bool {
    guard let coding = answer.headers["content-encoding"] else { return true }
    return coding.isEmpty || coding.lowercased() == "identity"
  }
}
