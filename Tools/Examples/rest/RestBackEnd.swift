import Foundation
import Tidemark
public import TidemarkHTTP
public import TidemarkREST

extension HTTPTransport {
  /// The back end's own answer: it repeats the request's id.
  ///
  /// A captive portal, a proxy or a cache on the way does not know it, and what that says of a
  /// change or a key counts for nothing: neither its 200 nor its 404.
  func ownAnswer(
    to request: HTTPTransportRequest, limit: Int
  ) async throws -> HTTPTransportAnswer {
    var request = request
    let id = UUID().uuidString
    request.headers["Request-Id"] = id
    request.headers["Cache-Control"] = "no-store"
    let answer = try await answer(to: request, limit: limit)
    guard answer.headers["request-id"] == id else {
      throw PeerError(.unavailable, "status \(answer.status), and not from the back end")
    }
    return answer
  }
}

/// How a program speaks with its own REST back end, the script `server.py` beside this file.
public struct RestBackEnd: Sendable {
  struct Item: Codable {
    var value_base64: Data
    var labels: [String]
  }

  struct Refusal: Codable {
    var code: String
    var message: String
  }

  struct Page: Codable {
    struct Change: Codable {
      var key: String
      var item: Item?
      var idempotency_key: String?
    }

    var changes: [Change]
    var token: String
    var more: Bool
  }

  /// The back end's address, such as `http://127.0.0.1:8000`.
  let url: String
  /// The name that stores know it by.
  let name: String
  let transport: any HTTPTransport

  /// - Parameter name: for a back end whose address may change; by default its address.
  public init(
    url: String, name: String? = nil, transport: any HTTPTransport = PlatformTransport.make()
  ) {
    self.url = url.hasSuffix("/") ? String(url.dropLast()) : url
    self.name = name ?? self.url
    self.transport = transport
  }

  /// The peer for a store.
  public func peer() -> RequestPeer {
    RequestPeer(named: name, send: send, fetch: fetch, read: read)
  }

  private func send(_ change: RequestChange) async throws -> RequestOutcome {
    var request = HTTPTransportRequest(
      method: change.kind == .put ? "PUT" : "DELETE", url: "\(url)/items/\(Self.text(change.key))",
      headers: ["Idempotency-Key": change.idempotencyKey, "Content-Type": "application/json"])
    if change.kind == .put {
      let item = Item(
        value_base64: Data(change.content.value), labels: change.content.labels.map(\.text))
      request.body = try Array(JSONEncoder().encode(item))
    }
    let answer = try await transport.ownAnswer(to: request, limit: 1 << 20)
    switch answer.status {
    case 200, 204: return .applied
    case 409:
      return .conflict(try Self.state(JSONDecoder().decode(Item.self, from: Data(answer.body))))
    case 400, 422:
      let refusal = try JSONDecoder().decode(Refusal.self, from: Data(answer.body))
      return .rejected(SyncRejection(code: refusal.code, message: refusal.message))
    case 429:
      return .retryLater(
        after: UInt32(answer.headers["retry-after"] ?? "").map { .seconds($0) })
    // Nothing else is known to be permanent.
    default: throw PeerError(.unavailable, "status \(answer.status)")
    }
  }

  private func fetch(_ token: String?) async throws -> RequestPage {
    let request = HTTPTransportRequest(url: "\(url)/changes?since=\(token ?? "0")")
    let answer = try await transport.ownAnswer(to: request, limit: 64 << 20)
    guard answer.status == 200 else { throw PeerError(.unavailable, "status \(answer.status)") }
    let page = try JSONDecoder().decode(Page.self, from: Data(answer.body))
    return RequestPage(
      changes: page.changes.compactMap { change in
        Self.bytes(change.key).map {
          RequestPage.Change(
            key: $0, state: change.item.map(Self.state) ?? .absent,
            idempotencyKey: change.idempotency_key)
        }
      }, token: page.token, hasMore: page.more)
  }

  private func read(_ key: Key, _ alias: KeyAlias?) async throws -> RequestState {
    let request = HTTPTransportRequest(url: "\(url)/items/\(Self.text(key))")
    let answer = try await transport.ownAnswer(to: request, limit: 1 << 20)
    if answer.status == 404 { return .absent }
    guard answer.status == 200 else { throw PeerError(.unavailable, "status \(answer.status)") }
    return Self.state(try JSONDecoder().decode(Item.self, from: Data(answer.body)))
  }

  static func state(_ item: Item) -> RequestState {
    .value(SyncContent(value: Array(item.value_base64), labels: item.labels.map { EntryLabel($0) }))
  }

  /// A key in an address: base64url without padding.
  private static func text(_ key: Key) -> String {
    Data(key.bytes).base64EncodedString().replacing("+", with: "-").replacing("/", with: "_")
      .replacing("=", with: "")
  }

  private static func bytes(_ text: String) -> [UInt8]? {
    let plain = text.replacing("-", with: "+").replacing("_", with: "/")
    let padding = String(repeating: "=", count: (4 - plain.count % 4) % 4)
    return Data(base64Encoded: plain + padding).map { Array($0) }
  }
}
