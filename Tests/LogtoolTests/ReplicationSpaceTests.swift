import Foundation
import LogtoolKit
import Testing
import Tidemark
import TidemarkEngine
@testable import TidemarkSync
import TidemarkSyncServer

@Suite("Space that replication takes")
struct ReplicationSpaceTests {
  private let bench = Bench()
  private let first: String
  private let updates: String

  private static let fixtures = Result {
    (try lines("debian-sample", 700), try lines("debian-sample-updates", 145))
  }

  init() throws { (first, updates) = try Self.fixtures.get() }

  /// The first lines of a fixture.
  private static func lines(_ name: String, _ count: Int) throws -> String {
    let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
      .deletingLastPathComponent()
    let bench = Bench()
    let run = bench.run(
      "import", "F", root.appending(path: "Fixtures/\(name).ndjson.zst").path)
    #expect(run.status == 0, "\(run.talk)")
    return bench.run("export", "F").lines.prefix(count).joined(separator: "\n") + "\n"
  }

  private func importing(_ store: String, _ lines: String) {
    #expect(bench.run("import", store, input: lines).status == 0)
  }

  /// Deletes some keys of the updates.
  private func delete(_ store: String) throws {
    let keys = bench.run("scan", store, "--keys").lines
    for index in stride(from: 0, to: keys.count, by: 100) {
      #expect(bench.run("delete", store, keys[index]).status == 0)
    }
  }

  private func replicate(_ command: String, _ store: String, _ peer: String) {
    let run = bench.run(command, store, command == "pull" ? "--from" : "--to", peer)
    #expect(run.status == 0, "\(run.talk)")
  }

  /// Bytes of the log after a compaction without history.
  private func compacted(_ store: String) throws -> Int {
    let run = bench.run("compact", store, "--drop-history")
    #expect(run.status == 0, "\(run.talk)")
    let bytes = try bench.run("stat", store, "--json").object()["bytes"] as? [String: Int]
    return try #require(bytes?["log"])
  }

  /// The bytes of a store that has the same and never had a peer.
  private func alone() throws -> Int {
    importing("alone", first)
    importing("alone", updates)
    try delete("alone")
    return try compacted("alone")
  }

  @Test("a store that only sends, only takes, or does both compacts to the log of one without peer")
  func oneWay() throws {
    let alone = try alone()
    for round in [first, updates, ""] {
      for store in ["push", "both"] {
        if round.isEmpty { try delete(store) } else { importing(store, round) }
      }
      replicate("replay", "push", "T")
      replicate("replay", "both", "U")
      replicate("pull", "pull", "U")
      replicate("pull", "both", "U")
    }
    for store in ["push", "pull", "both"] {
      let log = try compacted(store)
      #expect(log * 100 <= alone * 105, "\(store): \(log), not \(alone)")
      #expect(bench.run("export", store).lines.count == bench.run("export", "alone").lines.count)
      let held = try bench.run("stat", store, "--json").object()["held"] as? [Any]
      #expect(held?.isEmpty == true, "\(store)")
    }
  }

  @Test("a store with refused deletes compacts as others once they were sent, or forgotten")
  func parkedAndForgotten() async throws {
    let alone = try alone()
    importing("S", first)
    replicate("replay", "S", "T")
    importing("S", updates)
    try delete("S")
    let store = try bench.open("S")
    let refusing = SyncValidator { change, _ in
      change.kind == .delete ? SyncRejection(code: "no", message: "it stays") : nil
    }
    let peer = try StorePeer(
      bench.open("T"), options: SyncHandler.Options(validators: [refusing]))
    let name = try #require(try store.blocking.peers().first?.name)
    _ = try await store.replicator(named: name, peer: peer).syncOnce()
    await peer.close()
    try await store.close()
    let deletes = bench.run("parked", "S").lines.count
    #expect(deletes > 3)
    let log = try compacted("S")
    #expect(log * 100 <= alone * 106, "\(log), not \(alone)")
    bench.run("backup", "S", "B")
    let told = bench.run("stat", "S").output
    #expect(told.contains("\(deletes) deletes") && told.contains("peers forget \(name)"))
    #expect(bench.run("peers", "S").output.contains("kept here: "))
    #expect(bench.run("compact", "S", "--drop-history").talk.contains("stay for the peer \(name)"))
    for line in bench.run("parked", "S").lines {
      let key = String(line.prefix { $0 != "\t" })
      #expect(bench.run("explain", "S", key).output.contains("the peer \(name) has yet to"))
      #expect(bench.run("parked", "S", "retry", key).status == 0)
    }
    replicate("replay", "S", "T")
    #expect(bench.run("peers", "B", "forget", name).status == 0)
    for store in ["S", "B"] {
      let log = try compacted(store)
      #expect(log * 100 <= alone * 105, "\(store): \(log), not \(alone)")
      #expect(!bench.run("stat", store).output.contains("stay for the peer"))
    }
    #expect(bench.run("diff", "S", "T").status == 0)
  }

  @Test("a mistyped address leaves no peer behind, and pending says what each peer lacks")
  func mistyped() throws {
    let bench = Bench.withNotes()
    let before = try bench.run("stat", "S", "--json").object()["sequence"] as? Int
    for _ in 0..<2 {
      let away = bench.run(
        ["replay", "S", "--to", "http://localhost:1/mistyped"],
        configure: { console in
          console.openPeer = { _, _ in SilentPeer() }
        })
      #expect(away.status == 69)
    }
    #expect(bench.run("peers", "S").output.isEmpty)
    #expect(try bench.run("stat", "S", "--json").object()["sequence"] as? Int == before)
    #expect(bench.run("replay", "S", "--to", "T", "--name", "t").status == 0)
    #expect(bench.run("pending", "S").output == "nothing is pending\n")
    #expect(bench.run("replay", "S", "--to", "U", "--name", "u").status == 0)
    bench.run("put", "S", "k", "v")
    #expect(bench.run("replay", "S", "--to", "T", "--name", "t").status == 0)
    let lines = bench.run("pending", "S").lines
    try #require(lines.count == 3)
    #expect(lines[0].hasPrefix("1 entry, "))
    #expect(lines[1] == "  t  nothing is pending" && lines[2].hasPrefix("  u  1 entry, "))
    #expect(bench.run("peers", "S", "forget", "u").status == 0)
    #expect(bench.run("pending", "S").output == "nothing is pending\n")
  }
}

/// A peer that never answers.
private struct SilentPeer: Peer {
  var capabilities: PeerCapabilities { PeerCapabilities() }

  private var away: PeerError { PeerError(.unavailable, "nobody there") }

  func hello(_ request: HelloRequest) async throws -> HelloAnswer { throw away }
  func push(_ request: PushRequest) async throws -> PushAnswer { throw away }
  func pull(_ request: PullRequest) async throws -> PullAnswer { throw away }
  func values(_ request: ValuesRequest) async throws -> ValuesAnswer { throw away }
  func digest(_ request: DigestRequest) async throws -> DigestAnswer { throw away }
  func close() async {}
}
