/// A user's write on a device.
struct RestWrite: Sendable {
  enum Kind: String, Sendable { case put, bad, poison, group, toggle, delete }

  /// Tells its value from all others, and the order of writes.
  var number: Int
  var kind: Kind
  var key: String
  var value: String
  /// The write that it comes after.
  var parent: Int?
  var user = 0
  var sequence: UInt64 = 0

  /// The number of the write that has made a value.
  static func number(of value: String) -> Int? {
    guard value.hasPrefix("v") else { return nil }
    return Int(value.dropFirst().prefix { $0.isNumber })
  }
}

/// The facts that the oracle goes by: what was written, what came to the back end, and whom a
/// resolver has decided against.
struct RestLedger: Sendable {
  private(set) var writes: [RestWrite] = []
  private var byKey: [String: [Int]] = [:]
  private(set) var arrived: Set<Int> = []
  private var dropped: Set<Int> = []
  private var texts: [String: String] = [:]
  private var created: Set<String> = []
  /// The values for which there was no record any more.
  private var gone: Set<String> = []
  /// Whether several stores have the same writes. Each creates anew what others have deleted.
  var hasCopies = false
  /// The first promise that was broken.
  private(set) var fault: String?
  var tell: (@Sendable (String) -> Void)?

  func narrate(_ text: @autoclosure () -> String) { tell?(text()) }

  mutating func blame(_ text: String) { fault = fault ?? text }

  mutating func note(_ write: RestWrite) {
    writes.append(write)
    byKey[write.key, default: []].append(write.number)
  }

  mutating func drop(_ value: String) {
    if let number = RestWrite.number(of: value) { dropped.insert(number) }
  }

  /// Whether a write has come to the back end, or a resolver has decided against it.
  func isDone(_ number: Int) -> Bool { arrived.contains(number) || dropped.contains(number) }

  /// Whether what a write gave its key, or what took its place, is settled.
  private func isSettled(_ number: Int) -> Bool {
    byKey[writes[number].key, default: []].contains { later in
      later >= number && (isDone(later) || [.delete, .toggle].contains(writes[later].kind))
    }
  }

  /// A write that neither came to the back end nor waits, although nothing took its place.
  /// - Parameters:
  ///   - numbers: the writes of a device, in order.
  ///   - waiting: the keys whose writes wait.
  func lost(of numbers: [Int], but waiting: Set<String>) -> String? {
    let newest = Dictionary(numbers.map { (writes[$0].key, $0) }) { $1 }
    let lost = newest.values.sorted().first { number in
      ![.delete, .toggle].contains(writes[number].kind) && !isDone(number)
        && !waiting.contains(writes[number].key)
    }
    return lost.map { "\(writes[$0].value) at \(writes[$0].key) is lost" }
  }

  mutating func sent(_ request: RestRequest) {
    if let text = texts[request.idempotencyKey], text != request.text {
      blame("\(request.idempotencyKey) is the key of \(text) and of \(request.text)")
    }
    texts[request.idempotencyKey] = request.text
    let parts = request.idempotencyKey.split(separator: "-", omittingEmptySubsequences: false)
    if parts.map(\.count) != [8, 4, 4, 4, 12] { blame("\(request.idempotencyKey) is no UUID") }
    guard let number = RestWrite.number(of: request.body), writes.indices.contains(number) else {
      return
    }
    if let parent = writes[number].parent, !isSettled(parent) {
      blame("\(request.text) was sent before \(writes[parent].value), which it comes after")
    }
    if writes[number].user != request.sender.user {
      blame("\(request.text) was sent by the token of another user")
    }
    if writes[number].kind == .group { blame("\(request.text) was sent without its group") }
  }

  /// A back end has refused a child for its parent.
  mutating func refused(_ request: RestRequest, _ state: SimulatedBackEnd.State) {
    guard request.parent == nil, let number = RestWrite.number(of: request.body),
      let parent = writes[number].parent
    else { return }
    let key = writes[parent].key
    // Another device knows nothing of the id, and of a parent that was deleted it is forgotten.
    let records = state.records.values.filter {
      $0.birthKey == key && $0.birthSender == request.sender
    }
    let isDeleted = byKey[key, default: []].contains { $0 > parent && writes[$0].kind == .delete }
    if !isDeleted, !records.isEmpty, records.allSatisfy({ $0.body != nil }) {
      blame("\(request.text) was sent without the id of \(key)")
    }
  }

  /// A record that is to be written was deleted by somebody.
  mutating func noteGone(_ request: RestRequest) { gone.insert(request.body) }

  mutating func applied(
    _ request: RestRequest, to record: SimulatedBackEnd.Record?, _ id: String,
    _ traits: RestTraits
  ) {
    if let number = RestWrite.number(of: request.body) { arrived.insert(number) }
    guard traits.contains(.givesIDs) else { return }
    if request.method == .post {
      if !created.insert(request.body).inserted, request.body.hasPrefix("v"),
        !gone.contains(request.body)
      {
        blame("\(request.text) was created twice")
      }
    } else if let record, request.key != "note/\(id)", request.key != record.birthKey {
      blame("\(request.text) was sent to \(id), which is \(record.birthKey)")
    }
  }
}
