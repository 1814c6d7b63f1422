import Testing
import Tidemark
import TidemarkEngine
import TidemarkTestKit

@testable import TidemarkSync

@Suite("Conflicts in the terms of the store", .timeLimit(.minutes(20)))
struct ConflictTypesTests {
  private func store(_ clock: ManualClock) throws -> Store {
    try Store.openBlocking(
      at: "store",
      configuration: Store.Configuration(
        environment: Store.Environment(fileSystem: MemoryFileSystem(), clock: clock)))
  }

  @Test("a resolver reads the key as text and compares the times of both commits")
  func resolver() async throws {
    let seen = Lock<[Key: SyncConflict]>([:])
    let resolver = ConflictResolver { conflict in
      seen.withLock { $0[conflict.key] = conflict }
      if conflict.key.hasPrefix("draft/") { return .both(localKey: "\(conflict.key) (here)") }
      guard let remoteTime = conflict.remoteTime else { return .remote }
      return conflict.localTime > remoteTime ? .local : .remote
    }
    let (peer, clock) = (try SwitchedPeer(), ManualClock())
    let (here, there) = (try store(clock), try store(clock))
    let replicator = try here.replicator(named: "home", peer: peer, resolver: resolver)
    let other = try there.replicator(named: "home", peer: peer)
    let id = "7"
    try await here.put("note/" + id, "here")
    clock.advance(by: .milliseconds(1))
    for key in ["draft/1", "note/7", "note/8"] { try await there.put(key, "there") }
    clock.advance(by: .milliseconds(1))
    for key in ["draft/1", "note/8"] { try await here.put(key, "here") }
    let written = try ["note/7", "note/8"].map {
      (try here.entry(forKey: $0)?.validated, try there.entry(forKey: $0)?.validated)
    }
    _ = try await other.syncOnce()
    _ = try await replicator.syncOnce()

    #expect(try here.text("note/7") == "there" && here.text("note/8") == "here")
    #expect(try here.text("draft/1") == "there" && here.text("draft/1 (here)") == "here")
    let conflicts = seen.withLock { $0 }
    #expect(conflicts.keys.map(\.text).sorted() == ["draft/1", "note/7", "note/8"])
    for (key, times) in zip(["note/7", "note/8"] as [Key], written) {
      let conflict = try #require(conflicts[key])
      #expect(conflict.localTime.milliseconds == times.0?.milliseconds)
      #expect(conflict.remoteTime?.milliseconds == times.1?.milliseconds)
    }
    #expect(
      resolver.resolve(SyncConflict(key: "note/" + id, base: nil, local: nil, remote: nil))
        == .remote)
  }

  @Test("commits of one millisecond have times in their order")
  func sameMillisecond() async throws {
    let peer = try SwitchedPeer()
    let (here, there) = (try store(ManualClock()), try store(ManualClock()))
    let replicator = try here.replicator(named: "home", peer: peer, resolver: .ask)
    let other = try there.replicator(named: "home", peer: peer)
    try await there.put("a", "there")
    try await there.put("b", "there")
    try await here.put("b", "here")
    try await here.put("a", "here")
    _ = try await other.syncOnce()
    _ = try await replicator.syncOnce()
    let asked = try await replicator.conflicts().sorted { $0.key < $1.key }
    #expect(asked.map(\.key) == ["a", "b"])
    #expect(asked[0].localTime > asked[1].localTime)
    let (first, second) = (asked[0].remoteTime, asked[1].remoteTime)
    #expect(try #require(first) < #require(second))
    #expect(Set(asked.map(\.localTime.milliseconds)).count == 1)
  }
}
