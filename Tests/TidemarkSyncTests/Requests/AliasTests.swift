import Testing
import Tidemark
import TidemarkEngine
import TidemarkTestKit

@testable import TidemarkREST
@testable import TidemarkSync
@testable import TidemarkSyncProtocol

@Suite("A back end that gives ids to what is created")
struct AliasTests {
  private let back = NumberingBackEnd()

  private func device(seed: UInt64 = 1) throws -> RestDevice {
    try RestDevice(seed: seed) { [back] in back.peer() }
  }

  private func alias(_ device: RestDevice, _ key: String) throws -> String? {
    try device.session.knownAliases().alias(ofKey: key)?.text
  }

  private func key(_ device: RestDevice, _ alias: KeyAlias) throws -> String? {
    try device.session.knownAliases().key(ofAlias: alias)?.text
  }

  /// Lets the answer to the next push be lost.
  private func loseAnswer(_ device: RestDevice) async throws {
    let count = back.requests.count
    while back.requests.count == count { _ = try await device.step(toPush: true) }
  }

  private func parked(_ device: RestDevice) -> [SyncRejection] {
    device.session.outbox.waiting.values.compactMap {
      if case .parked(let rejection) = $0 { rejection } else { nil }
    }
  }

  @Test("an entry that was created is edited and deleted under the id that it was given")
  func editAndDelete() async throws {
    let device = try device()
    try device.put("a", "one")
    try await device.settle()
    #expect(try alias(device, "a") == "1" && key(device, "1") == "a")
    try device.put("a", "two")
    try await device.settle()
    try device.delete("a")
    try await device.settle()
    #expect(back.requests == ["POST one", "PUT 1 two", "DELETE 1"])
    #expect(try alias(device, "a") == nil && key(device, "1") == nil)
    #expect(device.session.totals.pulled == 0, "own changes are known")
  }

  @Test("ids are there after a restart, and after a compaction")
  func durable() async throws {
    let device = try device()
    for name in ["a", "b", "c"] { try device.put(name, name) }
    try await device.settle()
    try device.delete("b")
    try await device.settle()
    try device.restart()
    #expect(try alias(device, "a") == "1" && alias(device, "b") == nil && key(device, "3") == "c")
    try device.engine.compact(CompactionOptions(dropHistory: true))
    try device.restart()
    #expect(try alias(device, "a") == "1" && alias(device, "b") == nil && key(device, "3") == "c")
    try device.put("c", "new")
    try await device.settle()
    #expect(back.requests.last == "PUT 3 new")
  }

  @Test("a list of records names the ids when the log is not walked any more")
  func listed() async throws {
    let device = try device()
    for name in ["a", "b", "c"] { try device.put(name, name) }
    try await device.settle()
    try device.delete("b")
    try await device.settle()
    var table = try RecordTable(device.engine.reader)
    #expect(try table.writeCheckpoint(in: device.engine))
    try device.restart()
    #expect(try alias(device, "a") == "1" && alias(device, "b") == nil && alias(device, "c") == "3")
  }

  @Test("a create whose answer was lost is not done twice", arguments: [false, true])
  func lostAnswer(restarts: Bool) async throws {
    let device = try device()
    try device.put("a", "one")
    try await loseAnswer(device)
    if restarts { try device.restart() }
    #expect(try alias(device, "a") == nil)
    try await device.settle()
    // A peer that goes on living remembers the answer.
    #expect(back.requests == (restarts ? ["POST one", "POST one"] : ["POST one"]))
    #expect(back.texts == [1: "one"])
    #expect(try alias(device, "a") == "1" && device.session.isAtRest)
  }

  @Test(
    "an edit made while the create is under way goes after it, to the id",
    arguments: [false, true], [false, true])
  func editInFlight(restarts: Bool, tellsKeys: Bool) async throws {
    back.state.withLock { $0.tellsKeys = tellsKeys }
    let device = try device()
    try device.put("a", "one")
    try await loseAnswer(device)
    try device.put("a", "two")
    if restarts { try device.restart() }
    try await device.settle()
    #expect(back.requests.suffix(2) == ["POST one", "PUT 1 two"])
    #expect(back.requests.count == (restarts ? 3 : 2))
    #expect(back.texts == [1: "two"] && device.session.isAtRest)
    #expect(try device.get("note/1") == nil, "a second key for what was created here")
  }

  @Test("a delete made while the create is under way goes after it, to the id")
  func deleteInFlight() async throws {
    let device = try device()
    try device.put("a", "one")
    try await loseAnswer(device)
    try device.delete("a")
    try device.restart()
    try await device.settle()
    #expect(back.requests == ["POST one", "POST one", "DELETE 1"])
    #expect(back.texts.isEmpty && device.session.isAtRest)
    #expect(try alias(device, "a") == nil)
  }

  @Test("a key that is put after its delete was sent is created anew, and the id replaced")
  func anew() async throws {
    let device = try device()
    try device.put("a", "one")
    try await device.settle()
    try device.delete("a")
    try await loseAnswer(device)
    try device.put("a", "two")
    try device.restart()
    try await device.settle()
    #expect(back.requests == ["POST one", "DELETE 1", "DELETE 1", "POST two"])
    #expect(try alias(device, "a") == "2" && key(device, "1") == nil && key(device, "2") == "a")
    // Nobody heard of the delete.
    try device.delete("a")
    try device.put("a", "three")
    try await device.settle()
    #expect(back.requests.last == "PUT 2 three")
  }

  @Test("a delete that is settled takes the id with it, without a look at the list")
  func deletedUnseen() async throws {
    let device = try RestDevice { [back] in back.peer(canFetch: false) }
    try device.put("a", "one")
    try await device.settle()
    try device.delete("a")
    try await device.settle()
    #expect(try alias(device, "a") == nil && key(device, "1") == nil)
    try device.put("a", "two")
    try await device.settle()
    #expect(back.requests == ["POST one", "DELETE 1", "POST two"])
  }

  @Test("an id of which the store has not heard yet goes along when a batch is given up")
  func givenUp() async throws {
    let seen = Lock<[KeyAlias?]>([])
    let peer = RequestPeer(named: "x") { change in
      if change.key == "bad" { throw PeerError(.unauthorized, "no") }
      seen.withLock { $0.append(change.alias) }
      return change.alias == nil ? .appliedAs("1") : .applied
    }
    var device = Device(1)
    _ = try await peer.hello(HelloRequest(replica: device.id))
    device.number = 1
    let batch = device.batch([device.put("a", "one"), device.put("bad", "one")])
    await #expect(throws: PeerError.self) { try await peer.push(batch) }
    // In the place of what was given up goes an edit.
    var next = device.batch([device.put("a", "two")])
    next.batchID = BatchID(77)
    let mark = try await peer.push(next).mark
    #expect(seen.withLock { $0 } == [nil, "1"] && mark.aliases == [0: "1"])
  }

  @Test("an answer with another id replaces the one that was known")
  func replaced() async throws {
    let device = try device()
    try device.put("a", "one")
    try await device.settle()
    back.state.withLock { $0.trouble = { _ in .appliedAs("moved") } }
    try device.put("a", "two")
    try await device.settle()
    #expect(try alias(device, "a") == "moved" && key(device, "1") == nil)
    try device.restart()
    #expect(try alias(device, "a") == "moved" && key(device, "1") == nil)
  }

  @Test("an id that is another key's is not taken, and the change is parked")
  func clash() async throws {
    let device = try device()
    try device.put("a", "one")
    try await device.settle()
    back.state.withLock { $0.claim = { _ in "1" } }
    try device.put("b", "two")
    try device.put("c", "three")
    try await device.settle()
    #expect(parked(device).map(\.code) == ["alias", "alias"])
    #expect(parked(device).allSatisfy { $0.message.contains("the alias 1") })
    #expect(try key(device, "1") == "a" && alias(device, "b") == nil)
    // It wedges nothing.
    back.state.withLock { $0.claim = nil }
    try device.put("d", "four")
    try await device.settle()
    #expect(try alias(device, "d") == "4")
    try device.restart()
    #expect(parked(device).count == 2)
    #expect(try key(device, "1") == "a")
  }

  @Test("two that are created in one batch cannot have one id")
  func clashInBatch() async throws {
    back.state.withLock { $0.claim = { _ in "7" } }
    let device = try device()
    try device.put("a", "one")
    try device.put("b", "two")
    try await device.settle()
    #expect(try key(device, "7") == "a" && parked(device).map(\.code) == ["alias"])
  }

  @Test(
    "an id that is empty or too long is refused, and the longest is not",
    arguments: [0, 1, 1024, 1025])
  func bounds(length: Int) async throws {
    back.state.withLock { $0.claim = { _ in KeyAlias(String(repeating: "x", count: length)) } }
    let device = try device()
    try device.put("a", "one")
    try await device.settle()
    let isFine = (1...1024).contains(length)
    #expect(parked(device).map(\.code) == (isFine ? [] : ["alias"]))
    try device.restart()
    #expect(try alias(device, "a")?.utf8.count == (isFine ? length : nil))
  }

  @Test("a verdict with a wrong id is refused whichever peer it comes from")
  func hostilePeer() async throws {
    let device = try device()
    try device.put("a", "one")
    while true {
      let call = try #require(try device.session.next())
      guard case .pushRequest(let request) = call else {
        try device.session.receive(try await device.peer.answer(to: call))
        continue
      }
      var answer = try await device.peer.push(request)
      answer.mark.aliases = [0: KeyAlias(String(repeating: "x", count: 1025)), 9: "far"]
      try device.session.receive(.pushAnswer(answer))
      break
    }
    #expect(parked(device).map(\.code) == ["alias"])
    #expect(try device.session.knownAliases().count == 0)
  }
}
