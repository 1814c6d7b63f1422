internal import HTTPTypes
internal import TidemarkSyncServer

/// The coding of a message in a body.
enum Coding: Sendable, Hashable {
  case frame
  case json

  var contentType: String {
    switch self {
    case .frame: WireFrame.contentType
    case .json: "application/json"
    }
  }

  /// About how many times its length a body needs in memory while it is decoded: the parse tree of
  /// a JSON text has 24 bytes for each value, which may be two bytes of the text.
  var memoryFactor: Int {
    switch self {
    case .frame: 3
    case .json: 16
    }
  }

  /// About how many times the bytes of its values an answer needs in memory while it is encoded:
  /// the values, the growing text, and a copy to be sent.
  var answerFactor: Int {
    switch self {
    case .frame: 3
    case .json: 4
    }
  }

  /// The coding of a request's body.
  static func ofBody(_ fields: HTTPFields) throws(Problem) -> Coding {
    if let encoding = fields[.contentEncoding], encoding.lowercased() != "identity" {
      throw Problem(
        .malformed, "bodies are not to have a content encoding", status: .unsupportedMediaType)
    }
    guard let type = fields[.contentType], let coding = Coding(mediaType: type[...]) else {
      throw Problem(
        .malformed, "the content type has to be \(WireFrame.contentType) or application/json",
        status: .unsupportedMediaType)
    }
    return coding
  }

  /// The coding of the answer: by `Accept`, or else that of the request's body.
  static func ofAnswer(_ fields: HTTPFields) -> Coding {
    for type in (fields[.accept] ?? "").split(separator: ",") {
      if let coding = Coding(mediaType: type) { return coding }
    }
    return fields[.contentType].flatMap { Coding(mediaType: $0[...]) } ?? .json
  }

  /// The coding of a media type, without regard to its parameters.
  init?(mediaType: Substring) {
    switch mediaType.prefix(while: { $0 != ";" }).filter({ $0 != " " && $0 != "\t" }).lowercased() {
    case Self.frame.contentType: self = .frame
    case Self.json.contentType: self = .json
    default: return nil
    }
  }

  func decode(_ body: [UInt8], _ coder: WireCoder) throws(PeerError) -> WireMessage {
    switch self {
    case .frame: try coder.decode(body)
    case .json: try coder.decodeJSON(body)
    }
  }

  func encode(_ message: WireMessage, _ coder: WireCoder) throws(PeerError) -> [UInt8] {
    switch self {
    case .frame: try coder.encode(message)
    case .json: try coder.encodeJSON(message)
    }
  }
}
