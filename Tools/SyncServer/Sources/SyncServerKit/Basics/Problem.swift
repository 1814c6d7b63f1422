internal import HTTPTypes
internal import TidemarkSyncServer

/// An error that a request is answered with: its HTTP status, message and headers.
struct Problem: Error {
  var status: HTTPResponse.Status
  var error: PeerError
  var headers = HTTPFields()

  /// The error of a call, with the status for its kind.
  init(_ error: PeerError) {
    self.error = error
    status = Self.status(of: error.kind)
    if let text = error.retryAfterText { headers[.retryAfter] = text }
    if error.kind == .unauthorized { headers[.wwwAuthenticate] = "Bearer" }
  }

  init(
    _ kind: PeerError.Kind, _ message: String, status: HTTPResponse.Status? = nil,
    retryAfter: Duration? = nil
  ) {
    self.init(PeerError(kind, message, retryAfter: retryAfter))
    if let status { self.status = status }
  }

  /// The status for each kind: `RunningTheServer.md`, section "Answers".
  static func status(of kind: PeerError.Kind) -> HTTPResponse.Status {
    switch kind {
    case .malformed: .badRequest
    case .unauthorized: .unauthorized
    case .forbidden: .forbidden
    case .leaseExpired: .conflict
    case .cursorGone: .gone
    case .busy: .tooManyRequests
    case .failed: .internalServerError
    case .unavailable: .serviceUnavailable
    @unknown default: .internalServerError
    }
  }

  static let notFound = Problem(
    .forbidden, "there is nothing at this address", status: .notFound)
  static func tooLarge(_ most: Int) -> Problem {
    Problem(
      .malformed, "the body is longer than the \(most) bytes allowed", status: .contentTooLarge)
  }
  static let cutShort = Problem(.malformed, "the body ends too early")
  static let noRoom = Problem(
    .unavailable, "too many databases are in use", retryAfter: .seconds(5))
  static let tooManyAnswers = Problem(
    .busy, "too many answers wait to be read", retryAfter: .seconds(1))
  static let notReady = Problem(.unavailable, "the databases cannot be reached now")
  static let shuttingDown = Problem(.unavailable, "the server is shutting down")

  static func methodNotAllowed(_ method: HTTPRequest.Method) -> Problem {
    var problem = Problem(
      .malformed, "this address takes \(method.rawValue) only", status: .methodNotAllowed)
    problem.headers[.allow] = method.rawValue
    return problem
  }
}

extension PeerError {
  /// The value of `Retry-After`: whole seconds, rounded up, so that no retry comes too early.
  var retryAfterText: String? {
    guard let retryAfter else { return nil }
    let (seconds, rest) = min(max(retryAfter, .zero), .seconds(UInt32.max)).components
    return String(seconds + (rest > 0 ? 1 : 0))
  }
}
