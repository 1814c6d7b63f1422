import Testing
import Tidemark
import TidemarkSync
import TidemarkSyncServer
import TidemarkTesting

@testable import TidemarkSwiftUI

@Suite("Rows with their sync states", .store())
@MainActor
struct SyncStateTests {
  @Test("a row is waiting, then synced, in the list and in what a search finds")
  func rows() async throws {
    let store = try Store.underTest
    let notes = try Note.collection(in: store)
    let peer = try StorePeer(try await Store.open(at: .inMemory))
    let replicator = try store.replicator(named: "server", peer: peer)
    try await notes.put(Note(id: "1", text: "one"))
    let list = LiveState(ListRequest<Note>())
    list.follow(list.request, in: (store, replicator))
    #expect(list.rows.map(\.text) == ["one"] && list.rows.first?.syncState == nil)
    let found = LiveState(SearchRequest<Note>("text", "one"))
    found.follow(found.request, in: (store, replicator))
    func states(_ state: LiveState<some LiveRequest>) -> [KeyState] {
      state.syncStates.values.map { $0 }
    }
    try await until { states(list) == [.waiting(.pending)] && states(found) == states(list) }
    _ = try await replicator.syncOnce()
    try await until { list.rows.first?.syncState == .synced && states(found) == [.synced] }
    try await notes.put(Note(id: "2", text: "two"))
    try await until {
      list.rows.map(\.id) == ["1", "2"]
        && list.rows.map(\.syncState) == [.synced, .waiting(.pending)]
    }
    // Without the replicator the rows stay, and say nothing of a peer.
    list.follow(list.request, in: (store, nil))
    #expect(list.rows.map(\.syncState) == [nil, nil])
  }

  @Test("states are followed again after the store was suspended")
  func suspended() async throws {
    let store = try Store.underTest
    let peer = try StorePeer(try await Store.open(at: .inMemory))
    let replicator = try store.replicator(named: "server", peer: peer)
    let note = LiveState(ObjectRequest<Note>("1"))
    note.follow(note.request, in: (store, replicator))
    #expect(note.syncStates.isEmpty)
    try await note.collection.put(Note(id: "1", text: "one"))
    try await until { note.syncStates == ["1": .waiting(.pending)] }
    try await store.suspend()
    try await store.resume()
    try await note.collection.update("1") { $0.text = "changed" }
    _ = try await replicator.syncOnce()
    try await until { note.syncStates == ["1": .synced] }
  }
}
