import Testing
import Tidemark
import TidemarkEngine
import TidemarkTestKit

@testable import TidemarkREST
@testable import TidemarkSync
@testable import TidemarkSyncProtocol

@Suite("A back end whose list knows ids only")
struct FetchedAliasTests {
  private let back = NumberingBackEnd()

  private func device(seed: UInt64 = 1) throws -> RestDevice {
    try RestDevice(seed: seed) { [back] in back.peer() }
  }

  private func alias(_ device: RestDevice, _ key: String) throws -> String? {
    try device.session.knownAliases().alias(ofKey: key)?.text
  }

  @Test("an entry that others create gets a key, and goes back to its id when it is edited here")
  func adopt() async throws {
    back.write("theirs")
    let device = try device()
    try await device.settle()
    #expect(try device.get("note/1") == "theirs" && alias(device, "note/1") == "1")
    try device.restart()
    try device.put("note/1", "mine")
    try await device.settle()
    #expect(back.requests == ["PUT 1 mine"])
    back.write(nil, at: 1)
    try await device.settle()
    #expect(try device.get("note/1") == nil && alias(device, "note/1") == nil)
  }

  @Test("without a closure the key is the id")
  func defaultKey() async throws {
    back.write("theirs")
    let device = try RestDevice { [back] in
      RequestPeer(named: "x", send: { try back.send($0) }, fetch: { back.fetch($0) })
    }
    try await device.settle()
    #expect(try device.get("1") == "theirs")
  }

  @Test("a change that others make of an own entry comes to its key", arguments: [false, true])
  func edited(restarts: Bool) async throws {
    let device = try device()
    try device.put("a", "one")
    try await device.settle()
    back.write("theirs", at: 1)
    if restarts { try device.restart() }
    try await device.settle()
    #expect(try device.get("a") == "theirs" && device.get("note/1") == nil)
    back.write(nil, at: 1)
    try await device.settle()
    #expect(try device.get("a") == nil && alias(device, "a") == nil)
    try device.put("a", "again")
    try await device.settle()
    #expect(back.requests == ["POST one", "POST again"] && back.texts == [2: "again"])
  }

  @Test("an entry that came and went within a page leaves nothing, an unknown one goes unnoticed")
  func gone() async throws {
    back.write(nil, at: 9)
    let device = try RestDevice { [back] in
      RequestPeer(named: "x", send: { try back.send($0) }) { _ in
        RequestPage(
          changes: [
            RequestPage.Change(alias: "5", state: .value(SyncContent(value: [1]))),
            RequestPage.Change(alias: "5", state: .absent),
            RequestPage.Change(alias: "6", state: .absent),
          ], token: "end")
      }
    }
    try await device.settle()
    #expect(try device.get("5") == nil && device.get("6") == nil && alias(device, "5") == nil)
    #expect(try ReplicationLog(device.engine).newestChange(ofKey: Array("6".utf8)) == nil)
  }

  @Test("an id that only the list tells is learnt with the own change that it names")
  func learntFromList() async throws {
    let device = try RestDevice { [back] in
      RequestPeer(
        named: "x",
        send: {
          // It takes the change and says no more.
          if case .appliedAs = try back.send($0) { .applied } else { .applied }
        }, fetch: { back.fetch($0) }, newKey: { id, _ in "n\(id)" })
    }
    try device.put("a", "one")
    try await device.settle()
    try device.restart()
    #expect(try alias(device, "a") == "1")
    try device.put("a", "two")
    try await device.settle()
    #expect(back.requests == ["POST one", "PUT 1 two"])
  }

  @Test("newKey can take the key of another client's record from the record's content")
  func keyOfContent() async throws {
    let device = try RestDevice { [back] in
      back.peer(newKey: { _, content in
        "note/\(String(decoding: content.value.prefix { $0 != 0x20 }, as: UTF8.self))"
      })
    }
    for text in ["id-a of one", "id-b of two", "id-é of three"] { back.write(text) }
    try await device.settle()
    #expect(try device.get("note/id-a") == "id-a of one" && alias(device, "note/id-a") == "1")
    #expect(try alias(device, "note/id-b") == "2" && alias(device, "note/id-é") == "3")
  }

  @Test(
    "a record that takes the place of one that is gone gets its key", arguments: [false, true])
  func keyOfGone(listsEverything: Bool) async throws {
    let isLater = Lock(false)
    let first = RequestPage.Change(alias: "1", state: .value(SyncContent(value: [0x61])))
    let second = RequestPage.Change(alias: "2", state: .value(SyncContent(value: [0x62])))
    let device = try RestDevice {
      RequestPeer(
        named: "x", options: RequestPeer.Options(listsEverything: listsEverything),
        send: { _ in .applied },
        fetch: { token in
          guard isLater.withLock({ $0 }) else { return RequestPage(changes: [first], token: "1") }
          if token == "2" { return RequestPage(changes: [], token: "2") }
          guard !listsEverything || token == nil else { throw PeerError(.cursorGone, "expired") }
          let gone = RequestPage.Change(alias: "1", state: .absent)
          return RequestPage(changes: listsEverything ? [second] : [gone, second], token: "2")
        }, newKey: { _, _ in "k" })
    }
    try await device.settle()
    #expect(try device.get("k") == "a" && alias(device, "k") == "1")
    isLater.withLock { $0 = true }
    device.session.disconnect()
    for _ in 0..<50 {
      guard let call = try device.session.next() else { break }
      do {
        try device.session.receive(try await device.peer.answer(to: call))
      } catch let error as PeerError { try device.session.failed(error) }
    }
    #expect(try device.get("k") == "b" && alias(device, "k") == "2")
  }

  @Test("a key that was deleted and created anew is known by the id that one page tells")
  func createdAnew() async throws {
    let sent = Lock<[String]>([])
    let isListed = Lock(false)
    let device = try RestDevice {
      RequestPeer(
        named: "x",
        send: { change in
          sent.withLock { $0.append(change.idempotencyKey) }
          return .applied
        },
        fetch: { _ in
          let sent = sent.withLock { $0 }
          guard isListed.withLock({ $0 }) else { return RequestPage(changes: [], token: "t") }
          func own(_ id: KeyAlias, _ text: String?, _ key: Int) -> RequestPage.Change {
            RequestPage.Change(
              alias: id, state: text.map { .value(SyncContent(value: Array($0.utf8))) } ?? .absent,
              idempotencyKey: sent[key])
          }
          let changes =
            sent.count == 1
            ? [own("1", "one", 0)] : [own("1", nil, 1), own("2", "two", 2)]
          return RequestPage(changes: changes, token: "\(sent.count)")
        })
    }
    try device.put("a", "one")
    try await device.settle()
    isListed.withLock { $0 = true }
    try await device.settle()
    isListed.withLock { $0 = false }
    #expect(try alias(device, "a") == "1")
    try device.delete("a")
    try await device.settle()
    try device.put("a", "two")
    try await device.settle()
    isListed.withLock { $0 = true }
    try await device.settle()
    #expect(sent.withLock { $0.count } == 3)
    #expect(try alias(device, "a") == "2" && device.get("a") == "two" && device.get("2") == nil)
  }

  @Test("one page may tell an own change's id and what others have made of it since")
  func ownAndOthers() async throws {
    let operation = Lock<String?>(nil)
    let device = try RestDevice {
      RequestPeer(
        named: "x",
        send: { change in
          operation.withLock { $0 = change.idempotencyKey }
          return .applied
        },
        fetch: { token in
          guard let own = operation.withLock({ $0 }) else {
            return RequestPage(changes: [], token: "0")
          }
          return RequestPage(
            changes: [
              RequestPage.Change(
                alias: "4", state: .value(SyncContent(value: [0x31])), idempotencyKey: own),
              RequestPage.Change(alias: "4", state: .value(SyncContent(value: [0x32]))),
            ], token: "1")
        })
    }
    try device.put("a", "1")
    try await device.settle()
    #expect(try device.get("a") == "2" && device.get("4") == nil && alias(device, "a") == "4")
  }

  @Test("a list that gives both may call a key anew, but no two keys the same")
  func bothGiven() async throws {
    let page = Lock([RequestPage.Change]())
    let device = try RestDevice {
      RequestPeer(named: "x", send: { _ in .applied }) { _ in
        RequestPage(changes: page.withLock { $0 }, token: "t")
      }
    }
    func change(_ key: String, _ alias: KeyAlias) -> RequestPage.Change {
      RequestPage.Change(
        key: key, state: .value(SyncContent(value: [1])), alias: alias)
    }
    page.withLock { $0 = [change("a", "1")] }
    try await device.settle()
    page.withLock { $0 = [change("a", "2"), change("b", "1")] }
    try await device.settle()
    #expect(try alias(device, "a") == "2" && alias(device, "b") == "1")
    page.withLock { $0 = [change("c", "1")] }
    device.session.disconnect()
    await #expect(throws: PeerError.self) {
      while let call = try device.session.next() {
        try device.session.receive(try await device.peer.answer(to: call))
      }
    }
    #expect(try alias(device, "b") == "1" && device.get("c") == nil)
  }

  @Test("a key that has another id is not made once more")
  func madeTwice() async throws {
    let device = try RestDevice { [back] in back.peer(newKey: { _, _ in "k" }) }
    back.write("first")
    try await device.settle()
    back.write("second")
    device.session.disconnect()
    await #expect(throws: PeerError.self) {
      while let call = try device.session.next() {
        try device.session.receive(try await device.peer.answer(to: call))
      }
    }
    #expect(try device.get("k") == "first")
  }

  @Test("an edit of what is gone there is created anew where it wins")
  func editOfDeleted() async throws {
    let device = try device()
    try device.put("a", "one")
    try await device.settle()
    // Not in the list: only the answer tells.
    back.state.withLock { $0.rows = [] }
    try device.put("a", "two")
    try await device.settle()
    #expect(back.requests == ["POST one", "PUT 1 two", "POST two"])
    #expect(try alias(device, "a") == "2" && device.session.isAtRest)
  }

  @Test(
    "whenever the program dies, everything is created once and edited where it is",
    arguments: 1...16 as ClosedRange<UInt64>)
  func anyCrash(seed: UInt64) async throws {
    var generator = SeededGenerator(seed: seed)
    let device = try device(seed: seed)
    back.state.withLock { $0.tellsKeys = seed % 2 == 0 }
    var expected: [String: String] = [:]
    for round in 0..<60 {
      let key = "k\(generator.int(below: 8))"
      if generator.chance(0.25) {
        expected[key] = nil
        try device.delete(key)
      } else {
        expected[key] = "\(key) \(round)"
        try device.put(key, "\(key) \(round)")
      }
      for _ in 0..<generator.int(below: 6) {
        _ = try await device.step(losesAnswer: generator.chance(0.2))
      }
      if generator.chance(0.15) { try device.restart() }
    }
    try await device.settle()
    #expect(back.texts.values.sorted() == expected.values.sorted(), "seed \(seed)")
    for (key, value) in expected {
      let id = try alias(device, key).flatMap { Int($0) }
      #expect(id.flatMap { back.texts[$0] } == value, "seed \(seed), \(key)")
    }
    #expect(try device.session.knownAliases().count == expected.count, "seed \(seed)")
    let done = back.state.withLock { $0.done }
    #expect(Set(done).count == done.count, "seed \(seed)")
    #expect(device.session.isAtRest, "seed \(seed)")
  }

  @Test("a store tells both ways, each peer's apart, and forgetting a peer forgets its ids")
  func publicLookup() async throws {
    let store = try memoryStore()
    let (other, back) = (NumberingBackEnd(), back)
    other.write("taken")
    try await store.put("a", "one")
    var here: Replicator? = try store.replicator(named: "here", peer: back.peer())
    #expect(try await here?.syncOnce().isComplete == true)
    let there = try store.replicator(named: "there", peer: other.peer())
    #expect(try await there.syncOnce().isComplete)
    #expect(try await store.alias(forKey: "a", at: "here") == "1")
    #expect(try await store.alias(forKey: "a", at: "there") == "2")
    #expect(try await store.key(forAlias: "1", at: "here") == "a")
    #expect(try await store.key(forAlias: "1", at: "there") == "note/1")
    #expect(try await store.key(forAlias: "3", at: "here") == nil)
    here = nil
    try await store.forget(peer: "here")
    #expect(try await store.alias(forKey: "a", at: "here") == nil)
    #expect(try store.blocking.key(forAlias: "2", at: "there") == "a")
    #expect(try RecordTable(store.engine.reader).keys(of: .alias).count == 2)
  }

  @Test("the ids of a back end are forgotten where the name means another one")
  func anotherBackEnd() async throws {
    let device = try device()
    try device.put("a", "one")
    try await device.settle()
    let other = NumberingBackEnd()
    let peer = RequestPeer(
      named: "https://new.example.org", send: { try other.send($0) }, fetch: { other.fetch($0) })
    device.session.disconnect()
    for _ in 0..<100 {
      guard let call = try device.session.next() else { break }
      try device.session.receive(try await peer.answer(to: call))
    }
    #expect(other.requests == ["POST one"])
  }
}
