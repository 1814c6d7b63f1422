internal import HTTPTypes
internal import TidemarkSyncServer

/// How a message is written in a body.
enum Coding: Sendable, Hashable {
  case frame
  case json

  var contentType: String {
    switch self {
    case .frame: WireFrame.contentType
    case .json: "application/json"
    }
  }

  /// About how many times its length a body takes of memory until it is a message: the tree of a
  /// JSON text has 24 bytes for each value, which may be two bytes of the text.
  var memoryFactor: Int {
    switch self {
    case .frame: 3
    case .json: 16
    }
  }

  /// About how many times the bytes of its content an answer takes of memory while it is written:
  /// the content, the text of it as it grows, and a copy to be sent.
  var answerFactor: Int {
    switch self {
    case .frame: 3
    case .json: 4
    }
  }

  /// How a request's body is written.
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

  /// How the answer is to be written: as the request says, or else like its body.
  static func ofAnswer(_ fields: HTTPFields) -> Coding {
    for type in (fields[.accept] ?? "").split(separator: ",") {
      if let coding = Coding(mediaType: type) { return coding }
    }
    return fields[.contentType].flatMap { Coding(mediaType: $0[...]) } ?? .json
  }

  /// The coding of a media type, whatever its parameters are.
  init?(mediaType: Substring) {
    // Most callers write it as it stands here.
    if let coding = Coding(exactly: mediaType) {
      self = coding
      return
    }
    let name = mediaType.prefix { $0 != ";" }.filter { $0 != " " && $0 != "\t" }.lowercased()
    self.init(exactly: name[...])
  }

  private init?(exactly name: Substring) {
    switch name {
    case Self.frame.contentType[...]: self = .frame
    case Self.json.contentType[...]: self = .json
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
