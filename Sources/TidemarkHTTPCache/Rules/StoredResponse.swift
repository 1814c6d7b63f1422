internal import TidemarkEngine
internal import TidemarkHTTP
internal import TidemarkSyncProtocol

/// A response as the cache keeps it (RFC 9111, 3).
struct StoredResponse: Sendable, Hashable {
  /// Such as 200.
  var status: Int
  /// The fields by names in lower case.
  var headers: [String: String]
  /// When the request was sent, in milliseconds since 1970.
  var requestTime: Int64
  /// When the head of the response came.
  var responseTime: Int64
  /// The body, unless it is an attachment.
  var body: [UInt8] = []
  /// Whether parts of the body are here, each in an entry of its own: the fields are those of the
  /// whole.
  var isPartial = false

  var control: CacheControl { CacheControl(headers["cache-control"]) }

  /// The body's length, when the response says it.
  var length: Int? { headers["content-length"].flatMap(HTTPHeaders.contentLength) }

  // MARK: Fields

  /// The fields of an answer that are stored: those that concern neither one connection nor a
  /// proxy (RFC 9111, 3.1).
  static func storable(_ headers: [String: String]) -> [String: String] {
    var headers = headers
    ConnectionFields.remove(from: &headers)
    for name in ["proxy-authenticate", "proxy-authentication-info", "proxy-authorization"] {
      headers[name] = nil
    }
    return headers
  }

  /// Takes over what a 304, or the answer to a `HEAD`, says anew (RFC 9111, 3.2).
  mutating func freshen(_ fields: [String: String], requestTime: Int64, responseTime: Int64) {
    // The fields that describe the stored content must go on describing it.
    let kept: Set<String> = ["content-length", "content-encoding", "content-range"]
    // Neither an age nor a date that is not told any more is what it was.
    headers["age"] = nil
    headers["date"] = nil
    let tag = headers["etag"]
    for (name, value) in Self.storable(fields) where !kept.contains(name) {
      if PlantedBug.isOn(.varyNotRenewed), name == "vary" { continue }
      headers[name] = value
    }
    // A server that compresses says another tag for what it has not compressed.
    if tag != nil { headers["etag"] = tag }
    self.requestTime = requestTime
    self.responseTime = responseTime
  }

  // MARK: Bytes

  /// Most bytes of the fields of one response.
  static let mostHeadBytes = 65_536
  private static let mark = "tidemark-http 1"
  private static let partsMark = "tidemark-http-parts 1"

  /// The response as bytes: lines of text, an empty line, and the body.
  /// - Returns: nil where the fields are longer than what is kept, or are no lines.
  func encoded() -> [UInt8]? {
    let mark = isPartial ? Self.partsMark : Self.mark
    var head = "\(mark)\n\(status) \(requestTime) \(responseTime)\n"
    for (name, value) in headers.sorted(by: { $0.key < $1.key }) {
      guard !name.isEmpty, !name.contains(where: { $0 == ":" || $0.isNewline }),
        !value.utf8.contains(where: { $0 == 0x0a || $0 == 0x0d })
      else { return nil }
      head += "\(name): \(value)\n"
    }
    head += "\n"
    return head.utf8.count <= Self.mostHeadBytes ? Array(head.utf8) + body : nil
  }
}

extension StoredResponse {
  /// - Returns: nil for bytes that are no response.
  init?(_ bytes: [UInt8]) {
    var lines: [String] = []
    var start = 0
    while true {
      let rest = bytes[start...].prefix(Self.mostHeadBytes)
      guard let end = rest.firstIndex(of: 0x0a) else { return nil }
      let line = String(decoding: bytes[start..<end], as: UTF8.self)
      start = end + 1
      if line.isEmpty { break }
      guard start <= Self.mostHeadBytes else { return nil }
      lines.append(line)
    }
    guard lines.count >= 2, [Self.mark, Self.partsMark].contains(lines[0]) else { return nil }
    let numbers = lines[1].split(separator: " ").map { Int64($0) }
    guard numbers.count == 3, let status = numbers[0], (200...999).contains(status),
      let requestTime = numbers[1], let responseTime = numbers[2]
    else { return nil }
    self.status = Int(status)
    self.requestTime = requestTime
    self.responseTime = responseTime
    headers = [:]
    for line in lines.dropFirst(2) {
      guard let colon = line.firstIndex(of: ":") else { return nil }
      headers[String(line[..<colon])] = HTTPHeaders.trimmed(line[line.index(after: colon)...])
    }
    isPartial = lines[0] == Self.partsMark
    if !isPartial { body = Array(bytes[start...]) }
  }
}
