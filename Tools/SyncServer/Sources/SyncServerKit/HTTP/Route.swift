internal import HTTPTypes
internal import TidemarkSyncServer

/// What a request asks for, by its path and method.
enum Route: Sendable, Hashable {
  case health
  case ready
  case metrics
  /// A call of a peer, by the message that it takes.
  case call(WireMessage.Kind, DatabaseName)

  /// Matches the path of a request, without decoding it, against the routes.
  /// - Throws: for any other path or method.
  init(_ head: HTTPRequest) throws(Problem) {
    let target = head.path ?? ""
    let mark = target.utf8.firstIndex(of: UInt8(ascii: "?")) ?? target.endIndex
    self = try Self.find(target[..<mark])
    let method: HTTPRequest.Method = if case .call = self { .post } else { .get }
    guard head.method == method || (method == .get && head.method == .head) else {
      throw Problem.methodNotAllowed(method)
    }
  }

  private static func find(_ path: Substring) throws(Problem) -> Route {
    switch path {
    case "/health": return .health
    case "/ready": return .ready
    case "/metrics": return .metrics
    default: break
    }
    let parts = path.split(separator: "/", maxSplits: 4, omittingEmptySubsequences: false)
    guard parts.count == 4, parts[0].isEmpty, parts[2] == "v1",
      let name = DatabaseName(parts[1])
    else { throw Problem.notFound }
    let call = WireMessage.Kind.allCases.first { $0.isRequest && $0.name == parts[3] }
    guard let call else { throw Problem.notFound }
    return .call(call, name)
  }

  /// The route's name in metrics and logs.
  var label: String {
    switch self {
    case .health: "health"
    case .ready: "ready"
    case .metrics: "metrics"
    case .call(let call, _): call.name
    }
  }

  var database: DatabaseName? {
    switch self {
    case .health, .ready, .metrics: nil
    case .call(_, let name): name
    }
  }
}
