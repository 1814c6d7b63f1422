internal import TidemarkSyncProtocol

/// The header fields that concern one connection, and are not forwarded (RFC 9110, 7.6.1).
package enum ConnectionFields {
  private static let names: Set<String> = [
    "connection", "keep-alive", "proxy-connection", "te", "trailer", "transfer-encoding", "upgrade",
  ]

  /// Removes them, and those that `Connection` lists.
  package static func remove(from headers: inout [String: String]) {
    let named = HTTPHeaders.list(headers["connection"] ?? "").map { $0.lowercased() }
    // Cache-Control is for every recipient, even if Connection lists it (RFC 9110, 7.6.1).
    for name in names.union(named) where name != "cache-control" { headers[name] = nil }
  }
}

extension HTTPTransportRequest {
  /// The fields that are sent, with names in lower case: without those of the connection, and
  /// without those that follow from address and body.
  package var sentHeaders: [String: String] {
    var sent: [String: String] = [:]
    for (name, value) in headers.sorted(by: { $0.key < $1.key }) {
      let name = name.lowercased()
      let separator = name == "cookie" ? "; " : ", "
      if sent[name]?.append(separator + value) == nil { sent[name] = value }
    }
    ConnectionFields.remove(from: &sent)
    for name in ["content-length", "expect", "host"] { sent[name] = nil }
    return sent
  }

  /// The request as a transport sends it, with ``sentHeaders``.
  /// - Throws: `PeerError` of kind `failed` for text that would inject other fields or requests.
  func checked() throws(PeerError) -> HTTPTransportRequest {
    // A response to `CONNECT` begins a tunnel, which no transport supports.
    guard HTTPHeaders.isToken(method), method != "CONNECT" else {
      throw PeerError(.failed, "the method \(method) cannot be used")
    }
    guard !url.isEmpty, url.utf8.allSatisfy({ $0 > 0x20 && $0 != 0x7f }) else {
      throw PeerError(.failed, "the address is empty, or has a space or a control character")
    }
    for (name, value) in headers {
      guard HTTPHeaders.isToken(name) else {
        throw PeerError(.failed, "no field can have the name \(name)")
      }
      guard value.utf8.allSatisfy({ $0 >= 0x20 && $0 != 0x7f || $0 == 0x09 }) else {
        throw PeerError(.failed, "the field \(name) has a control character")
      }
    }
    var request = self
    request.headers = sentHeaders
    if !hasBody { request.body = [] }
    return request
  }

  /// Whether a body is sent, if only an empty one.
  var hasBody: Bool { method != "GET" && method != "HEAD" }
}

extension HTTPTransportAnswer {
  /// Most bytes of the fields of a response, together with those of its interim responses.
  static let mostHeadBytes = 256 << 10

  static var tooLongHead: PeerError {
    PeerError(.unavailable, "the answer's head has more than \(mostHeadBytes) bytes")
  }

  static let closed = PeerError(.unavailable, "the connection was closed")

  static let untoldEnd = PeerError(
    .unavailable,
    "the answer has no length and ended with its connection, so that it may have been cut off")

  /// Whether a response ends with its head (RFC 9110, 6.4.1).
  /// - Parameter isHead: whether the request was a `HEAD`, whose response has the length of a body
  ///   that is not sent.
  func hasNoBody(isHead: Bool) -> Bool { isHead || status == 204 || status == 304 }

  /// The head of a final response from its fields, without those of the connection.
  /// - Throws: `PeerError` of kind `unavailable` for an invalid status, length or size.
  init(status: Int, fields: [(name: String, value: String)]) throws(PeerError) {
    guard (200...999).contains(status) else {
      throw PeerError(.unavailable, "the server answers with the invalid status \(status)")
    }
    self.init(status: status)
    var bytes = 0
    for (name, value) in fields {
      bytes += name.utf8.count + value.utf8.count
      guard bytes <= Self.mostHeadBytes else { throw Self.tooLongHead }
      // An invalid name is ignored, as other clients do.
      guard HTTPHeaders.isToken(name) else { continue }
      let name = name.lowercased()
      if name == "set-cookie" {
        setCookies.append(value)
      } else if headers[name]?.append(", \(value)") == nil {
        headers[name] = value
      }
    }
    let isChunked = headers["transfer-encoding"] != nil
    ConnectionFields.remove(from: &headers)
    guard let text = headers["content-length"] else { return }
    guard let length = HTTPHeaders.contentLength(text) else {
      throw PeerError(.unavailable, "the answer's Content-Length is invalid")
    }
    // RFC 9112, 6.3: chunks override a length.
    headers["content-length"] = isChunked ? nil : "\(length)"
  }
}
