import Testing
import Tidemark
import TidemarkEngine
import TidemarkTestKit

@testable import TidemarkSync
@testable import TidemarkSyncProtocol
@testable import TidemarkSyncServer

@Suite("The states of keys")
struct KeyStateTests {
  @Test("a key is local, pending, synced and parked, as its newest entry is")
  func states() async throws {
    let store = try memoryStore()
    let validator = SyncValidator { change, _ in
      change.key.text.hasPrefix("bad") ? SyncRejection(code: "bad", message: "no") : nil
    }
    let peer = try SwitchedPeer(options: SyncHandler.Options(validators: [validator]))
    let replicator = try store.replicator(
      named: "server", peer: peer, scope: SyncScope(keyPrefixes: ["note/", "bad/"]))
    let keys: [Key] = ["note/1", "bad/1", "other", "nothing"]
    try await store.put("note/1", "1")
    try await store.put("bad/1", "1")
    try await store.put("other", "1")
    #expect(
      try await replicator.states(forKeys: keys)
        == [.waiting(.pending), .waiting(.pending), .local, .local])
    _ = try await replicator.syncOnce()
    #expect(
      try await replicator.states(forKeys: keys)
        == [
          .synced, .waiting(.parked(SyncRejection(code: "bad", message: "no"))), .local, .local,
        ])
    try await store.delete("note/1")
    #expect(try await replicator.state(forKey: "note/1") == .waiting(.pending))
    _ = try await replicator.syncOnce()
    #expect(try await replicator.state(forKey: "note/1") == .synced)
    try await store.close()
  }

  @Test("changes of states are told to who looks at a list, each once")
  func changes() async throws {
    let store = try memoryStore()
    let replicator = try store.replicator(named: "server", peer: try SwitchedPeer())
    var states = replicator.stateChanges(forKeys: ["a", "b"]).makeAsyncIterator()
    #expect(try await states.next() == [.local, .local])
    try await store.put("other", "1")
    try await store.put("b", "1")
    #expect(try await states.next() == [.local, .waiting(.pending)])
    _ = try await replicator.syncOnce()
    while let now = try await states.next(), now != [.local, .synced] {
      #expect(now == [.local, .waiting(.inFlight)])
    }
    try await store.close()
  }

  struct Note: Codable, Identifiable, Sendable {
    var id: String
    var text: String
  }

  @Test("objects of a collection have states by their ids, also live, and models follow")
  @MainActor func objects() async throws {
    let store = try memoryStore()
    let replicator = try store.replicator(named: "server", peer: try SwitchedPeer())
    let notes = try store.collection(Note.self, named: "notes")
    let model = SyncStatusModel(replicator)
    var states = try notes.syncStates(of: ["1", "2"], by: replicator).makeAsyncIterator()
    #expect(try await states.next() == ["1": .local, "2": .local])
    try await notes.put(Note(id: "1", text: "a"))
    #expect(try await states.next() == ["1": .waiting(.pending), "2": .local])
    _ = try await replicator.syncOnce()
    while try await notes.syncState(of: ["1", "2"], by: replicator)["1"] != .synced {
      await Task.yield()
    }
    while model.status.pending.entries != 0 { await Task.yield() }
    try await store.close()
  }
}
