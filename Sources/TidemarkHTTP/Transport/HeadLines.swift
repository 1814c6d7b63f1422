internal import TidemarkSyncProtocol

/// Parses the head of the final response from the lines of a connection, which also has the lines
/// of interim responses and trailers.
struct HeadLines: Sendable {
  private enum Part { case status, fields, body }

  private let isHead: Bool
  private var part = Part.status
  private var status = 0
  private var fields: [(name: String, value: String)] = []
  /// Bytes of all lines so far.
  private var bytes = 0

  /// Whether the final head is complete, and the body may follow.
  var isWhole: Bool { part == .body }
  /// Whether only the end of the connection ends the body.
  private(set) var endsWithConnection = false

  static let noAnswer = PeerError(
    .unavailable, "the server closed the connection without an answer")

  /// - Parameter isHead: whether the request was a `HEAD`.
  init(isHead: Bool) { self.isHead = isHead }

  /// Takes a line with its end.
  /// - Returns: the head, when this line has ended it.
  mutating func take(_ line: [UInt8]) throws(PeerError) -> HTTPTransportAnswer? {
    // Trailers, after the body, are ignored.
    guard part != .body else { return nil }
    bytes += line.count
    guard bytes <= HTTPTransportAnswer.mostHeadBytes else { throw HTTPTransportAnswer.tooLongHead }
    let text = Self.trimmed(line[...])
    if part == .status {
      status = Self.status(of: text)
      // After 101 the connection speaks another protocol, which no request asks for.
      guard status >= 100, status != 101 else { throw Self.noAnswer }
      part = .fields
    } else if let first = line.first, first == 0x20 || first == 0x09 {
      // A continuation of the previous field (RFC 9112, 5.2).
      if let last = fields.indices.last {
        let parts = [fields[last].value, Self.value(text)]
        fields[last].value = parts.filter { !$0.isEmpty }.joined(separator: " ")
      }
    } else if !text.isEmpty {
      add(text)
    } else if status < 200 {
      // An interim response: the final one follows.
      part = .status
      fields = []
    } else {
      return try finish()
    }
    return nil
  }

  private mutating func add(_ line: ArraySlice<UInt8>) {
    guard let colon = line.firstIndex(of: UInt8(ascii: ":")) else { return }
    let name = String(decoding: line[..<colon], as: UTF8.self)
    fields.append((name, Self.value(Self.trimmed(line[(colon + 1)...]))))
  }

  private mutating func finish() throws(PeerError) -> HTTPTransportAnswer {
    part = .body
    let answer = try HTTPTransportAnswer(status: status, fields: fields)
    // Connections speak HTTP/1.1 only, where a length or chunks tell the end of a body (RFC 9112,
    // 6.3), or else the end of the connection does.
    let isFramed = fields.contains { name, value in
      name.lowercased() == "content-length"
        || name.lowercased() == "transfer-encoding" && value.lowercased().hasSuffix("chunked")
    }
    endsWithConnection = !isFramed && !answer.hasNoBody(isHead: isHead)
    return answer
  }

  /// The number in `HTTP/1.1 200 OK`: three digits; 0 for any other line.
  private static func status(of line: ArraySlice<UInt8>) -> Int {
    let words = line.split(separator: UInt8(ascii: " "), maxSplits: 2)
    guard words.count > 1, words[1].count == 3, words[0].starts(with: Array("HTTP/".utf8)) else {
      return 0
    }
    return Int(String(decoding: words[1], as: UTF8.self)) ?? 0
  }

  private static func trimmed(_ bytes: ArraySlice<UInt8>) -> ArraySlice<UInt8> {
    let isText = { (byte: UInt8) in byte > 0x20 || ![0x09, 0x0a, 0x0d, 0x20].contains(byte) }
    guard let start = bytes.firstIndex(where: isText), let end = bytes.lastIndex(where: isText)
    else { return [] }
    return bytes[start...end]
  }

  /// A field's value: UTF-8, or else ISO 8859-1. Zero bytes and line ends in it become spaces
  /// (RFC 9110, 5.5).
  private static func value(_ bytes: ArraySlice<UInt8>) -> String {
    let bytes = bytes.map { [0x00, 0x0a, 0x0d].contains($0) ? UInt8(ascii: " ") : $0 }
    return String(validating: bytes, as: UTF8.self)
      ?? String(String.UnicodeScalarView(bytes.map { Unicode.Scalar($0) }))
  }
}
