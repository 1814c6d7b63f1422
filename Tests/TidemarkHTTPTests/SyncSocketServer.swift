import Foundation
import TidemarkEngine
import TidemarkSyncServer

@testable import TidemarkHTTP

/// Serves a handler by the routes of the protocol, in frames and in JSON.
struct SyncRoutes: Sendable {
  let handler: SyncHandler
  /// Accepted in the header `Authorization`; nil for anything.
  var authorization: String?
  /// The access that calls have now.
  var access: @Sendable () -> SyncAccess = { .everything }
  private let coder = WireCoder(limit: WireFrame.largestLimit)

  init(_ handler: SyncHandler, authorization: String? = nil) {
    self.handler = handler
    self.authorization = authorization
  }

  func serve(_ request: SocketServer.Request, _ connection: Connection) -> Bool {
    let isJSON = request.headers["content-type"] == Self.jsonType
    if let authorization, request.headers["authorization"] != authorization {
      return answer(connection, .error(PeerError(.unauthorized, "no")), isJSON)
    }
    do {
      let message = try isJSON ? coder.decodeJSON(request.body) : coder.decode(request.body)
      return answer(connection, try call(request.path, message), isJSON)
    } catch let error as PeerError {
      return answer(connection, .error(error), isJSON)
    } catch { return false }
  }

  private static let jsonType = "application/json"

  private func answer(_ connection: Connection, _ message: WireMessage, _ isJSON: Bool) -> Bool {
    var status = 200
    if case .error(let error) = message { status = Self.status(error.kind) }
    guard let body = try? isJSON ? coder.encodeJSON(message) : coder.encode(message) else {
      return false
    }
    return connection.answer(
      status, body, type: isJSON ? Self.jsonType : WireFrame.contentType)
  }

  private static func status(_ kind: PeerError.Kind) -> Int {
    switch kind {
    case .unavailable: 503
    case .busy: 429
    case .unauthorized: 401
    case .forbidden: 403
    case .cursorGone: 410
    case .leaseExpired: 409
    case .malformed: 400
    case .failed: 500
    }
  }

  private func call(_ path: String, _ message: WireMessage) throws -> WireMessage {
    let route = path.split(separator: "/").last
    if case ("pull", .pullRequest(let request)) = (route, message) {
      return .pullAnswer(try pull(request))
    }
    guard let route, route == message.kind.name, message.kind.isRequest else {
      throw PeerError(.malformed, "no such call")
    }
    return try handler.answer(message, access: access())
  }

  private func pull(_ request: PullRequest) throws -> PullAnswer {
    let deadline = ContinuousClock.now + .milliseconds(Int64(request.waitMilliseconds))
    while true {
      let answer = try handler.pull(request, access: access())
      guard answer.entries.isEmpty, answer.cursor.offset >= answer.range.head,
        ContinuousClock.now < deadline
      else { return answer }
      // Short looks, so that the wait ends without a thread of its own.
      usleep(2000)
    }
  }
}
