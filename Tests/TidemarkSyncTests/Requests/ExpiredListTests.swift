import Testing
import Tidemark
import TidemarkEngine
import TidemarkTestKit

@testable import TidemarkREST
@testable import TidemarkSync
@testable import TidemarkSyncProtocol

/// Notes whose list forgets what was deleted, and whose tokens expire.
private final class ForgetfulList: Sendable {
  struct State {
    var notes: [Int: String] = [:]
    var count = 0
    /// Tokens below it have expired.
    var oldest = 0
    var requests: [String] = []
    var answers: [String: RequestOutcome] = [:]
    /// A list that is no list of this back end's.
    var isEmpty = false
  }

  let state = Lock(State())

  func peer(listsEverything: Bool = true, reads: Bool = false) -> RequestPeer {
    let read: RequestPeer.Read = { _, alias in
      let text = self.state.withLock { $0.notes[Int(alias?.text ?? "") ?? 0] }
      return text.map { .value(SyncContent(value: Array($0.utf8))) } ?? .absent
    }
    return RequestPeer(
      named: "x", options: RequestPeer.Options(listsEverything: listsEverything),
      send: { try self.send($0) }, fetch: { try self.fetch($0) }, read: reads ? read : nil,
      newKey: { id, _ in "note/\(id)" })
  }

  func send(_ change: RequestChange) throws -> RequestOutcome {
    state.withLock { state in
      if let answer = state.answers[change.idempotencyKey] { return answer }
      let id = change.alias.flatMap { Int($0.text) }
      let text = change.kind == .put ? String(decoding: change.content.value, as: UTF8.self) : nil
      state.requests.append("\(id.map { "PUT \($0)" } ?? "POST") \(text ?? "-")")
      state.count += 1
      var outcome = RequestOutcome.applied
      if let id {
        if state.notes[id] == nil { return text == nil ? .duplicate : .conflict(.absent) }
        state.notes[id] = text
      } else {
        state.notes[state.count] = text
        outcome = .appliedAs(KeyAlias(state.count))
      }
      state.answers[change.idempotencyKey] = outcome
      return outcome
    }
  }

  func fetch(_ token: String?) throws -> RequestPage {
    try state.withLock { (state: inout State) throws in
      let since = token.flatMap { Int($0) }
      if let since, since < state.oldest { throw PeerError(.cursorGone, "410") }
      let rows = state.isEmpty ? [:] : state.notes
      // After a token it has what was deleted too, as absent; from the beginning it has not.
      return RequestPage(
        changes: (since == nil ? rows : [:]).sorted { $0.key < $1.key }.map { id, text in
          RequestPage.Change(
            alias: KeyAlias(id), state: .value(SyncContent(value: Array(text.utf8))))
        }, token: "\(state.count)")
    }
  }

  func expire() {
    state.withLock {
      $0.count += 1
      $0.oldest = $0.count
    }
  }
}

@Suite("A list whose token has expired")
struct ExpiredListTests {
  private let back = ForgetfulList()

  private func device(listsEverything: Bool = true, reads: Bool = false) throws -> RestDevice {
    try RestDevice { [back] in back.peer(listsEverything: listsEverything, reads: reads) }
  }

  /// Works as the replicator does, which tells the session of failures.
  private func settle(_ device: RestDevice) async throws {
    device.session.disconnect()
    for _ in 0..<200 {
      guard let call = try device.session.next() else { return }
      do { try device.session.receive(try await device.peer.answer(to: call)) } catch let error
        as PeerError
      { try device.session.failed(error) }
    }
    Issue.record("no end of calls")
  }

  @Test(
    "keys that are gone there go here, new ones come, and unsent changes stay",
    arguments: [1, 7, 90], [false, true])
  func expired(gone: Int, reads: Bool) async throws {
    let device = try device(reads: reads)
    for number in 0..<100 { try device.put("k\(number)", "\(number)") }
    try await settle(device)
    let ids = try (0..<100).map { number in
      try #require(try device.session.knownAliases().alias(ofKey: "k\(number)")?.text)
    }
    back.state.withLock { state in
      for number in 0..<gone { state.notes[Int(ids[number]) ?? 0] = nil }
      state.notes[Int(ids[95]) ?? 0] = "theirs"
      state.notes[5_000] = "new"
    }
    back.expire()
    try device.put("k96", "mine")
    try device.put("k0", "mine")
    try await settle(device)
    for number in 1..<gone {
      #expect(try device.get("k\(number)") == nil, "\(number)")
      #expect(try device.session.knownAliases().alias(ofKey: "k\(number)") == nil)
    }
    #expect(try device.get("k\(gone)") == "\(gone)" && device.get("k95") == "theirs")
    #expect(try device.get("note/5000") == "new")
    let there = back.state.withLock { $0.notes }
    #expect(there[Int(ids[96]) ?? 0] == "mine" && there.values.count { $0 == "mine" } == 2)
    #expect(device.session.isAtRest)
    // The new note is edited, not created once more.
    try device.put("note/5000", "edited")
    try await settle(device)
    #expect(back.state.withLock { $0.requests.last } == "PUT 5000 edited")
    try device.restart()
    try await settle(device)
    #expect(try device.get("k1") == (gone > 1 ? nil : "1") && device.session.isAtRest)
  }

  @Test("many that are gone are left to the user, and so are all", arguments: [3, 50, 150])
  func suspicious(count: Int) async throws {
    let device = try device()
    for number in 0..<count { try device.put("k\(number)", "\(number)") }
    try await settle(device)
    back.state.withLock { $0.isEmpty = true }
    back.expire()
    try await settle(device)
    #expect(device.session.undecidedDeletions == count)
    #expect(try device.get("k0") == "0")
    // It was no list of this back end's; the user does not agree.
    back.state.withLock { $0.isEmpty = false }
    try device.session.decidePurge(false)
    try await settle(device)
    #expect(try (0..<count).allSatisfy { try device.get("k\($0)") == "\($0)" })
    #expect(back.state.withLock { $0.notes.count } == count)
  }

  @Test("without lists of everything, what has gone meanwhile stays")
  func ghosts() async throws {
    let device = try device(listsEverything: false)
    for number in 0..<5 { try device.put("k\(number)", "\(number)") }
    try await settle(device)
    back.state.withLock { $0.notes = $0.notes.filter { $0.value != "3" } }
    back.expire()
    try await settle(device)
    #expect(try device.get("k3") == "3" && device.get("k2") == "2" && device.session.isAtRest)
  }

  @Test(
    "a list that has always more and no new token is an error, and not asked for ever",
    arguments: [["a"], ["a", "a"], ["a", "b", "a"], ["a", "b", "c", "d", "e", "b"]],
    [false, true])
  func circle(tokens: [String], isFull: Bool) async throws {
    let asked = Lock(0)
    let peer = RequestPeer(
      named: "x", options: RequestPeer.Options(listsEverything: isFull), send: { _ in .applied }
    ) { token in
      let count = asked.withLock { count in
        count += 1
        return count
      }
      let loop =
        tokens.count == 1 ? 1 : tokens.count - (tokens.firstIndex(of: tokens.last ?? "") ?? 0) - 1
      let index = count - 1
      let text =
        index < tokens.count
        ? tokens[index] : tokens[tokens.count - 1 - (loop - 1) + (index - tokens.count) % loop]
      return RequestPage(
        changes: [RequestPage.Change(key: "k\(count)", state: .absent)], token: text, hasMore: true)
    }
    var device = Device(1)
    let hello = try await peer.hello(HelloRequest(replica: device.id))
    let error = await #expect(throws: PeerError.self) {
      if isFull {
        _ = try await peer.digest(DigestRequest(replica: device.id))
      } else {
        var after = hello.mark.number == 0 ? FeedPosition.beginning : hello.range.headPosition
        while true {
          after = try await peer.pull(PullRequest(replica: device.id, after: after)).cursor
        }
      }
    }
    #expect(error?.kind == .failed && error?.message.contains("token") == true)
    #expect(asked.withLock { $0 } <= 20)
    device.number = 1
  }
}

@Suite("Times of a back end of one's own")
struct RequestTimeTests {
  private static let newer = ConflictResolver { conflict in
    guard let remoteTime = conflict.remoteTime else { return .ask }
    return conflict.localTime >= remoteTime ? .local : .remote
  }

  private static let rules: [ConflictResolver] = [
    newer, .mergeFields(clash: .latest), .mergeFields(clash: .latest, fallback: .remoteWins),
  ]

  private func text(_ value: String) -> String { "{\"a\":\"\(value)\"}" }

  /// The text that a device holds, and whether the user is asked, after both have edited.
  private func held(
    _ resolver: ConflictResolver, _ time: Timestamp?, byConflict: Bool
  ) async throws -> (text: String?, isAsked: Bool) {
    let theirs = RequestState.value(SyncContent(value: Array(text("theirs").utf8)), time: time)
    let base = RequestState.value(SyncContent(value: Array(text("base").utf8)), time: time)
    let hasEdited = Lock(false)
    let device = try RestDevice(resolver: resolver) {
      RequestPeer(named: "x") { change in
        byConflict && !isSalted(change.idempotencyKey) ? .conflict(theirs) : .applied
      } fetch: { token in
        let isEdited = hasEdited.withLock { $0 }
        if byConflict { return RequestPage(changes: [], token: "0") }
        if token == (isEdited ? "1" : "0") { return RequestPage(changes: [], token: token ?? "") }
        return RequestPage(
          changes: [RequestPage.Change(key: "k", state: isEdited ? theirs : base)],
          token: isEdited ? "1" : "0")
      }
    }
    if !byConflict { try await device.settle() }
    hasEdited.withLock { $0 = true }
    try device.put("k", text("mine"))
    device.session.disconnect()
    for _ in 0..<50 { _ = try await device.step() }
    return (try device.get("k"), try !device.session.waitingForUser().isEmpty)
  }

  @Test(
    "the later edit wins", arguments: 0..<3, [5, 1_000, 4_000_000_000, 9_000_000_000] as [Int64])
  func later(rule: Int, seconds: Int64) async throws {
    let found = try await held(
      Self.rules[rule], Timestamp(seconds: seconds), byConflict: false)
    #expect(found.text == text(seconds > 1_000 ? "theirs" : "mine") && !found.isAsked)
  }

  @Test("without a time the user is asked", arguments: 0..<3)
  func unknown(rule: Int) async throws {
    let found = try await held(Self.rules[rule], nil, byConflict: false)
    #expect(found.text == text("mine") && found.isAsked)
  }

  @Test("a conflict's state has its time as well", arguments: 0..<3)
  func conflict(rule: Int) async throws {
    var found = try await held(
      Self.rules[rule], Timestamp(seconds: 9_000_000_000), byConflict: true)
    #expect(found.text == text("theirs") && !found.isAsked)
    found = try await held(Self.rules[rule], nil, byConflict: true)
    #expect(found.text == text("mine") && found.isAsked)
  }
}
