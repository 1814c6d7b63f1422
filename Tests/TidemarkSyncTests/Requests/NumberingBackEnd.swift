import Tidemark
import TidemarkEngine

@testable import TidemarkREST
@testable import TidemarkSyncProtocol

/// A back end that gives what is created ids of its own, and knows nothing of keys: `POST` creates,
/// `PUT` and `DELETE` name the id. It keeps idempotency keys, as it should.
final class NumberingBackEnd: Sendable {
  struct Row {
    var id: Int
    /// Nil once it was deleted.
    var text: String?
    var idempotencyKey: String?
    /// The id that it claims.
    var alias: KeyAlias

    init(id: Int, text: String?, idempotencyKey: String?, alias: KeyAlias? = nil) {
      self.id = id
      self.text = text
      self.idempotencyKey = idempotencyKey
      self.alias = alias ?? KeyAlias(id)
    }
  }

  struct State {
    var nextID = 1
    /// In the order of the last change.
    var rows: [(number: Int, row: Row)] = []
    var count = 0
    var answers: [String: RequestOutcome] = [:]
    /// All requests, also those that were answered as before: such as `POST one`, `PUT 1 two`.
    var requests: [String] = []
    /// Idempotency keys of requests that did something.
    var done: [String] = []
    /// The answer to give instead of looking.
    var trouble: (@Sendable (RequestChange) throws -> RequestOutcome?)?
    /// The id that it claims for something new.
    var claim: (@Sendable (Int) -> KeyAlias)?
    var tellsKeys = true
  }

  let state = Lock(State())

  func peer(canFetch: Bool = true, newKey: RequestPeer.NewKey? = nil) -> RequestPeer {
    let fetch: RequestPeer.Fetch = { self.fetch($0) }
    return RequestPeer(
      named: "https://api.example.org", options: RequestPeer.Options(changesPerBatch: 4),
      send: { try self.send($0) }, fetch: canFetch ? fetch : nil,
      newKey: newKey ?? { id, _ in "note/\(id)" })
  }

  func send(_ change: RequestChange) throws -> RequestOutcome {
    try state.withLock { (state: inout State) throws in
      let text = String(decoding: change.content.value, as: UTF8.self)
      let id = change.alias.flatMap { Int($0.text) }
      let name =
        change.kind == .delete
        ? "DELETE \(id ?? 0)" : id.map { "PUT \($0) \(text)" } ?? "POST \(text)"
      state.requests.append(name)
      if let answer = try state.trouble?(change) { return answer }
      if let answer = state.answers[change.idempotencyKey] { return answer }
      let outcome = state.apply(change.kind, id, text, change.idempotencyKey)
      state.answers[change.idempotencyKey] = outcome
      state.done.append(change.idempotencyKey)
      return outcome
    }
  }

  func fetch(_ token: String?) -> RequestPage {
    state.withLock { state in
      let start = token.flatMap { Int($0) } ?? 0
      let rows = state.rows.filter { $0.number > start }.sorted { $0.number < $1.number }
      let page = rows.prefix(3)
      return RequestPage(
        changes: page.map { _, row in
          RequestPage.Change(
            alias: row.alias,
            state: row.text.map { .value(SyncContent(value: Array($0.utf8))) } ?? .absent,
            idempotencyKey: state.tellsKeys ? row.idempotencyKey : nil)
        }, token: String(page.last?.number ?? start), hasMore: rows.count > page.count)
    }
  }

  /// Somebody else's change.
  @discardableResult
  func write(_ text: String?, at id: Int? = nil) -> Int {
    state.withLock { state in
      let id = id ?? state.newID()
      state.set(Row(id: id, text: text, idempotencyKey: nil))
      return id
    }
  }

  /// The texts that are there, by id.
  var texts: [Int: String] {
    state.withLock { state in
      Dictionary(
        uniqueKeysWithValues: state.rows.compactMap { _, row in
          row.text.map { (row.id, $0) }
        })
    }
  }

  var requests: [String] { state.withLock { $0.requests } }
}

extension NumberingBackEnd.State {
  mutating func newID() -> Int {
    defer { nextID += 1 }
    return nextID
  }

  mutating func set(_ row: NumberingBackEnd.Row) {
    rows.removeAll { $0.row.id == row.id }
    count += 1
    rows.append((count, row))
  }

  fileprivate mutating func apply(
    _ kind: ChangeKind, _ id: Int?, _ text: String, _ key: String
  ) -> RequestOutcome {
    guard let id else {
      guard kind == .put else { return .duplicate }
      let id = newID()
      let alias = claim?(id) ?? KeyAlias(id)
      set(NumberingBackEnd.Row(id: id, text: text, idempotencyKey: key, alias: alias))
      return .appliedAs(alias)
    }
    guard rows.contains(where: { $0.row.id == id && $0.row.text != nil }) else {
      return kind == .put ? .conflict(.absent) : .duplicate
    }
    set(NumberingBackEnd.Row(id: id, text: kind == .put ? text : nil, idempotencyKey: key))
    return .applied
  }
}
