import Foundation
import Tidemark
public import TidemarkHTTP
public import TidemarkREST

/// How a program speaks with a back end that gives what is created ids of its own: the notes of
/// `server.py` beside this file. The ids are aliases of the store's keys.
public struct RestNotes: Sendable {
  struct Created: Codable { var id: Int }

  struct Page: Codable {
    struct Change: Codable {
      var id: Int
      var item: RestBackEnd.Item?
      var idempotency_key: String?
    }

    var changes: [Change]
    var token: String
    var more: Bool
  }

  let url: String
  let transport: any HTTPTransport

  public init(url: String, transport: any HTTPTransport = PlatformTransport.make()) {
    self.url = url
    self.transport = transport
  }

  /// The peer for a store.
  public func peer() -> RequestPeer {
    RequestPeer(
      named: "notes example", send: send, fetch: fetch, read: read,
      newKey: { id, _ in "note/\(id)" })
  }

  private func send(_ change: RequestChange) async throws -> RequestOutcome {
    guard change.kind == .put || change.alias != nil else { return .duplicate }
    var request = HTTPTransportRequest(
      method: change.kind == .delete ? "DELETE" : change.alias == nil ? "POST" : "PUT",
      url: change.alias.map { "\(url)/notes/\($0)" } ?? "\(url)/notes",
      headers: ["Idempotency-Key": change.idempotencyKey, "Content-Type": "application/json"])
    if change.kind == .put {
      let item = RestBackEnd.Item(
        value_base64: Data(change.content.value), labels: change.content.labels.map(\.text))
      request.body = try Array(JSONEncoder().encode(item))
    }
    let answer = try await transport.ownAnswer(to: request, limit: 1 << 20)
    switch answer.status {
    case 201:
      return .appliedAs(
        KeyAlias(try JSONDecoder().decode(Created.self, from: Data(answer.body)).id))
    case 200, 204: return .applied
    // Somebody has deleted it meanwhile. If the edit wins it is created anew.
    case 404: return change.kind == .put ? .conflict(.absent) : .duplicate
    case 400, 422:
      let refusal = try JSONDecoder().decode(RestBackEnd.Refusal.self, from: Data(answer.body))
      return .rejected(SyncRejection(code: refusal.code, message: refusal.message))
    default: throw PeerError(.unavailable, "status \(answer.status)")
    }
  }

  private func fetch(_ token: String?) async throws -> RequestPage {
    let request = HTTPTransportRequest(url: "\(url)/notes?since=\(token ?? "0")")
    let answer = try await transport.ownAnswer(to: request, limit: 64 << 20)
    guard answer.status == 200 else { throw PeerError(.unavailable, "status \(answer.status)") }
    let page = try JSONDecoder().decode(Page.self, from: Data(answer.body))
    return RequestPage(
      changes: page.changes.map { change in
        RequestPage.Change(
          alias: KeyAlias(change.id), state: change.item.map(RestBackEnd.state) ?? .absent,
          idempotencyKey: change.idempotency_key)
      }, token: page.token, hasMore: page.more)
  }

  private func read(_ key: Key, _ alias: KeyAlias?) async throws -> RequestState {
    guard let alias else { return .absent }
    let answer = try await transport.ownAnswer(
      to: HTTPTransportRequest(url: "\(url)/notes/\(alias)"), limit: 1 << 20)
    if answer.status == 404 { return .absent }
    guard answer.status == 200 else { throw PeerError(.unavailable, "status \(answer.status)") }
    return RestBackEnd.state(
      try JSONDecoder().decode(RestBackEnd.Item.self, from: Data(answer.body)))
  }
}
