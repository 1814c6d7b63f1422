internal import Tidemark
internal import TidemarkEngine

/// The device that sends a request, and the number of the user whose token it has.
struct RestSender: Sendable, Equatable {
  var device = -1
  var user = 0
}

/// A request as it comes to a back end.
struct RestRequest: Sendable {
  enum Method: String { case post, put, delete, get }

  var method: Method
  /// The id in the path, or the key where the back end gives no ids.
  var id = ""
  var body = ""
  var idempotencyKey = ""
  /// The version that the record must have; 0 for none at all.
  var ifMatch: Int?
  /// The id that the body names as its parent.
  var parent: String?
  /// The device's key, of which the back end knows nothing.
  var key = ""
  var sender = RestSender()

  /// All that must be the same whenever an idempotency key is.
  var text: String { "\(method == .delete ? "delete" : "put") \(key) \(body)" }
}

/// The answer to a request: a back end's, or that of a box on the way to it.
struct RestAnswer: Sendable {
  var status: Int
  /// The header by which the back end is known; boxes have none.
  var isOfService = true
  var id = ""
  var body: String?
  var version: Int?
  var changes: [SimulatedBackEnd.Change] = []
  var token = ""
  var hasMore = false
}

/// The request or its answer was lost.
struct RestLost: Error {}

/// A REST back end in memory, and the network before it.
final class SimulatedBackEnd: Sendable {
  /// A change of a record, as the list has it.
  struct Change: Sendable {
    var number: Int
    var id: String
    /// Nil for a delete.
    var body: String?
    var idempotencyKey: String?
  }

  struct Fuse: Sendable {
    /// How many requests succeed before the one that is lost.
    var left: Int
    /// Whether the request is carried out, and its answer lost.
    var isAfter: Bool
    /// Whether the process that has sent it dies.
    var kills: Bool
  }

  struct Record: Sendable {
    var body: String?
    /// The number of its last change.
    var version: Int
    /// The key of which the device spoke that has created it.
    var birthKey: String
    var birthSender: RestSender
  }

  struct State: Sendable {
    let traits: RestTraits
    let page: Int
    var ledger = RestLedger()
    var records: [String: Record] = [:]
    var changes: [Change] = []
    var answers: [String: RestAnswer] = [:]
    var nextID = 1
    /// How often tokens have expired.
    var epoch = 0
    /// Deletes up to here are forgotten.
    var oldest = 0
    var requests = 0
    // The network.
    var fuse: Fuse?
    var isDead = false
    var fromBox = 0
    var busy = 0
    var down = 0
    var stuck = 0
  }

  let state: Lock<State>

  init(_ script: RestScript) {
    state = Lock(State(traits: script.traits, page: script.page))
  }

  /// Carries out a request that changes something, or asks for one record.
  func answer(_ request: RestRequest) throws -> RestAnswer {
    try state.withLock { (state: inout State) throws in
      if request.method != .get { state.ledger.sent(request) }
      if let answer = try state.answerOnTheWay() { return answer }
      let answer = state.apply(request)
      state.ledger.narrate("  \(request.method) \(request.id) \(request.text): \(answer.status)")
      try state.loseAnswer()
      return answer
    }
  }

  /// A page of what has changed since a token.
  func list(_ token: String?) throws -> RestAnswer {
    try state.withLock { (state: inout State) throws in
      if let answer = try state.answerOnTheWay() { return answer }
      let answer = state.list(token)
      state.ledger.narrate(
        "  list \(token ?? "-"): \(answer.status) "
          + answer.changes.map { "\($0.id)=\($0.body ?? "-")" }.joined(separator: " ")
          + " \(answer.token)\(answer.hasMore ? " …" : "")")
      try state.loseAnswer()
      return answer
    }
  }
}

// MARK: The network

extension SimulatedBackEnd.State {
  private static let boxStatuses = [200, 404, 302, 403, 201, 401, 502, 409, 429, 422, 410, 204]

  fileprivate mutating func answerOnTheWay() throws -> RestAnswer? {
    requests += 1
    if isDead { throw RestLost() }
    if let now = fuse {
      if now.left == 0, !now.isAfter {
        (fuse, isDead) = (nil, now.kills)
        throw RestLost()
      }
      fuse?.left -= 1
    }
    if fromBox > 0 {
      fromBox -= 1
      let status = Self.boxStatuses[requests % Self.boxStatuses.count]
      ledger.narrate("  a box answers \(status)")
      return RestAnswer(status: status, isOfService: false, body: "<html>")
    }
    guard down > 0 else { return nil }
    down -= 1
    return RestAnswer(status: 503)
  }

  fileprivate mutating func loseAnswer() throws {
    guard let fuse, fuse.left < 0, fuse.isAfter else { return }
    (self.fuse, isDead) = (nil, fuse.kills)
    ledger.narrate("  its answer is lost")
    throw RestLost()
  }
}

// MARK: The back end

extension SimulatedBackEnd.State {
  fileprivate mutating func apply(_ request: RestRequest) -> RestAnswer {
    if request.method == .get {
      guard let body = records[request.id]?.body else { return RestAnswer(status: 404) }
      return RestAnswer(status: 200, body: body, version: records[request.id]?.version)
    }
    if traits.contains(.keepsKeys), let known = answers[request.idempotencyKey] { return known }
    if busy > 0 {
      busy -= 1
      return RestAnswer(status: 429)
    }
    let fails = request.body.contains("poison")
    if fails, !traits.contains(.failsLate) { return RestAnswer(status: 500) }
    var answer = decide(request)
    if fails {
      // The change is made once, and the answer stays the same.
      answer = RestAnswer(status: 500)
      answers[request.idempotencyKey] = answer
    } else if answer.status < 300 || traits.contains(.keepsErrors) {
      answers[request.idempotencyKey] = answer
    }
    return answer
  }

  private mutating func decide(_ request: RestRequest) -> RestAnswer {
    if request.body.contains("bad") { return RestAnswer(status: 422, body: "it is bad") }
    if traits.contains(.hasForeignKeys), request.body.contains(" in "),
      records[request.parent ?? ""]?.body == nil
    {
      ledger.refused(request, self)
      return RestAnswer(status: 422, body: "there is no parent \(request.parent ?? "")")
    }
    let held = records[request.id]
    if traits.contains(.comparesVersions), let version = request.ifMatch,
      version != (held?.body == nil ? 0 : held?.version ?? 0)
    {
      let isTold = traits.contains(.tellsState)
      if held?.body == nil { ledger.noteGone(request) }
      return RestAnswer(
        status: 409, body: isTold ? held?.body : nil, version: held?.body == nil ? 0 : held?.version
      )
    }
    switch request.method {
    case .get: return RestAnswer(status: 400)
    case .post:
      let id = "\(nextID)"
      nextID += 1
      write(request.body, to: id, request)
      return RestAnswer(status: 201, id: id, version: changes.count)
    case .put:
      if traits.contains(.givesIDs), held?.body == nil {
        ledger.noteGone(request)
        return RestAnswer(status: 404)
      }
      write(request.body, to: request.id, request)
      return RestAnswer(status: 200, version: changes.count)
    case .delete:
      guard held?.body != nil else { return RestAnswer(status: 404) }
      write(nil, to: request.id, request)
      return RestAnswer(status: 204, version: 0)
    }
  }

  /// Changes a record, and appends that to the change list.
  /// - Parameter request: nil where somebody at the back end does.
  mutating func write(_ body: String?, to id: String, _ request: RestRequest?) {
    let isNew = records[id]?.body == nil
    if let request {
      if request.method == .post, isGone(request) { ledger.noteGone(request) }
      ledger.applied(request, to: records[id], id, traits)
    }
    changes.append(
      SimulatedBackEnd.Change(
        number: changes.count + 1, id: id, body: body, idempotencyKey: request?.idempotencyKey))
    var record =
      records[id].flatMap { isNew ? nil : $0 }
      ?? SimulatedBackEnd.Record(
        version: 0, birthKey: request?.key ?? "", birthSender: request?.sender ?? RestSender())
    (record.body, record.version) = (body, changes.count)
    records[id] = record
  }

  /// Whether the record that a device has under the key of a request was deleted.
  private func isGone(_ request: RestRequest) -> Bool {
    records.contains { id, record in
      record.body == nil && (record.birthKey == request.key || request.key == "note/\(id)")
    }
  }

  /// All tokens given so far expire.
  mutating func expire() {
    epoch += 1
    oldest = changes.count
  }

  /// A token is how often tokens have expired and the number of the last change.
  fileprivate mutating func list(_ token: String?) -> RestAnswer {
    let parts = (token ?? "\(epoch).0").split(separator: ".")
    guard parts.first == "\(epoch)" else { return RestAnswer(status: 410) }
    let after = parts.last.flatMap { Int($0) } ?? 0
    if stuck > 0 {
      stuck -= 1
      return RestAnswer(status: 200, token: token ?? "\(epoch).0", hasMore: true)
    }
    let all = changes[after...].filter { change in
      let isLast = records[change.id]?.version == change.number
      let isKept = change.number > oldest
      return (isLast || traits.contains(.listsVersions) && isKept)
        && (change.body != nil || traits.contains(.listsDeletes) && isKept)
    }
    var answer = RestAnswer(status: 200, changes: Array(all.prefix(page)))
    answer.hasMore = all.count > page
    let last = answer.hasMore ? answer.changes.last?.number ?? after : changes.count
    answer.token = "\(epoch).\(last)"
    return answer
  }
}
