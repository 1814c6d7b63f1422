import LogtoolKit
import Testing
import Tidemark
import TidemarkEngine
@testable import TidemarkSync
import TidemarkSyncServer

@Suite("Replay, pull and comparison")
struct ReplayTests {
  private let bench = Bench.withNotes()

  private func replay(_ arguments: String..., from source: String = "S", to target: String = "T")
    throws -> [String: Any]
  {
    let run = bench.run(["replay", source, "--to", target, "--output", "json"] + arguments)
    #expect(run.status == 0, "\(run.talk)")
    return try run.object()
  }

  private func pull(_ store: String, from source: String = "T") throws -> [String: Any] {
    let run = bench.run(["pull", store, "--from", source, "--output", "json"])
    #expect(run.status == 0, "\(run.talk)")
    return try run.object()
  }

  /// The report of a comparison.
  private func diff(_ arguments: String...) throws -> (status: Int32, [String: Any]) {
    let run = bench.run(["diff"] + arguments + ["--json"])
    return (run.status, try run.object())
  }

  @Test("the newest of every key arrives with everything that belongs to it, cached data stays")
  func everything() throws {
    let run = bench.run("replay", "S", "--to", "T", "--output", "json")
    #expect(
      try run.names() == [
        "applied", "attachment_bytes_sent", "attachment_bytes_taken", "batches", "conflicts",
        "duplicates", "parked", "parked_in_all", "pending",
        "sent", "taken", "to_decide", "to_send",
      ])
    #expect(try run.object()["sent"] as? Int == 2)
    let owned = bench.run("export", "S").lines.filter { !$0.contains("\"cache\"") }
    #expect(bench.run("export", "T").lines == owned)
    #expect(owned.count == 2)
  }

  @Test("a second replay sends nothing and says so; what was written since goes, deletes too")
  func again() throws {
    _ = try replay()
    #expect(try replay()["sent"] as? Int == 0)
    #expect(bench.run("replay", "S", "--to", "T").talk == "sent nothing: the peer has everything\n")
    bench.run("put", "S", "more", "1")
    bench.run("delete", "S", "note/1")
    #expect(try replay()["sent"] as? Int == 2)
    #expect(bench.run("get", "T", "more").output == "1")
    #expect(bench.run("get", "T", "note/1").status == 1)
    #expect(try replay()["sent"] as? Int == 0)
  }

  @Test("pull makes another store equal, which one comparison shows; updates and deletes arrive")
  func pulls() throws {
    bench.run("delete", "S", "note/3")
    _ = try replay()
    #expect(try pull("B")["taken"] as? Int == 2)
    #expect(bench.run("export", "B").output == bench.run("export", "S").output)
    for pair in [("S", "T"), ("B", "T"), ("S", "B")] {
      let (status, found) = try diff(pair.0, pair.1)
      #expect(status == 0 && found["comparisons"] as? Int == 1, "\(pair)")
    }
    bench.run("put", "S", "note/1", "other")
    bench.run("delete", "S", "task/1")
    _ = try replay()
    #expect(try pull("B")["taken"] as? Int == 2)
    #expect(bench.run("get", "B", "note/1").output == "other")
    #expect(bench.run("get", "B", "task/1").status == 1)
    #expect(try pull("B")["taken"] as? Int == 0)
    #expect(try diff("B", "T").status == 0)
    // Entries that came from a peer are not pending.
    #expect(bench.run("pending", "B").output == "nothing is pending\n")
  }

  @Test("a comparison names what is only here, only there and different, with status 2")
  func differences() throws {
    bench.run("delete", "S", "note/3")
    _ = try replay()
    bench.run("put", "S", "here", "1")
    bench.run("put", "T", "there", "1")
    bench.run("put", "S", "note/1", "changed")
    let run = bench.run("diff", "S", "T")
    #expect(run.status == 2)
    #expect(run.output == "-\there\n+\tthere\n~\tnote/1\n")
    let (_, found) = try diff("S", "T")
    #expect(found["only_here"] as? Int == 1 && found["only_there"] as? Int == 1)
    #expect(found["different"] as? Int == 1)
    let verify = bench.run("verify", "S", "--remote", "T", "--json")
    #expect(try verify.status == 2 && verify.object()["only_here"] as? Int == 1)
    #expect(bench.run("diff", "S", "absent").status == 66)
    #expect(try bench.disk.kind("absent") == nil)
  }

  @Test("a comparison of large stores looks only into what differs")
  func largeDifferences() throws {
    let lines = (0..<3000).map { "{\"key\":\"k\($0)\",\"value\":\"v\"}\n" }.joined()
    bench.run("import", "L", input: lines)
    _ = try replay(from: "L", to: "M")
    #expect(try diff("L", "M").1["comparisons"] as? Int == 1)
    bench.run("put", "L", "k77", "other")
    bench.run("delete", "M", "k78")
    let (status, found) = try diff("L", "M")
    #expect(status == 2)
    #expect(found["different"] as? Int == 1 && found["only_here"] as? Int == 1)
    #expect((found["comparisons"] as? Int ?? 99) <= 3)
    // One side has few keys where the other has many.
    bench.run(
      "import", "F", input: "{\"key\":\"k1\",\"value\":\"v\"}\n{\"key\":\"x\",\"value\":\"\"}\n")
    let (_, few) = try diff("F", "M")
    #expect(few["only_here"] as? Int == 1 && few["only_there"] as? Int == 2998)
    let (_, many) = try diff("L", "F")
    #expect(many["only_here"] as? Int == 2999 && many["only_there"] as? Int == 1)
  }

  @Test("a dry run counts, and creates no target")
  func dryRun() throws {
    #expect(try replay("--dry-run")["to_send"] as? Int == 2)
    #expect(bench.run("stat", "T").status == 66)
    _ = try replay()
    #expect(try replay("--dry-run")["to_send"] as? Int == 0)
  }

  @Test("both sides changed: the sender's value stays, pulling keeps what was not sent")
  func conflicts() throws {
    _ = try replay()
    _ = try pull("B")
    bench.run("put", "S", "note/1", "mine")
    bench.run("put", "B", "note/1", "theirs")
    _ = try replay(from: "B")
    #expect(try pull("S")["taken"] as? Int == 1)
    #expect(bench.run("get", "S", "note/1").output == "mine")
    #expect(try replay()["sent"] as? Int == 1)
    #expect(bench.run("get", "T", "note/1").output == "mine")
    _ = try pull("B")
    #expect(bench.run("get", "B", "note/1").output == "mine")
  }

  @Test("pending tells how much, by label, and lists and exports it")
  func pending() throws {
    #expect(bench.run("pending", "S").output.hasPrefix("2 entries, "))
    let counts = try bench.run("pending", "S", "--json").object()
    #expect(counts["entries"] as? Int == 2 && counts["parked"] as? Int == 0)
    #expect((counts["labels"] as? [[String: Any]])?.count == 2)
    #expect(
      try bench.run("pending", "S", "--label", "home", "--json").object()["entries"] as? Int == 1)
    #expect(
      bench.run("pending", "S", "--list").lines == [
        "task/1\t3\tput\tpending", "note/1\t4\tput\tpending",
      ])
    let exported = bench.run("pending", "S", "--export", "-")
    #expect(bench.run("import", "I", input: exported.output).status == 0)
    #expect(bench.run("get", "I", "note/1").output == "milk, bread")
    _ = try replay("--name", "t")
    #expect(bench.run("pending", "S").output == "nothing is pending\n")
    #expect(
      try bench.run("pending", "S", "--peer", "other", "--json").object()["entries"] as? Int == 2)
  }

  @Test("peers tells how far each is, and forgets one")
  func peers() throws {
    _ = try replay("--name", "t")
    bench.run("put", "S", "k", "v")
    let found = try bench.run("peers", "S", "--json").object()["peers"] as? [[String: Any]]
    #expect(found?.first?["name"] as? String == "t" && found?.first?["to_send"] as? Int == 1)
    #expect(found?.first?["lease_ends"] is String && found?.first?["last_answer"] is String)
    #expect(bench.run("peers", "S").output.contains("to send: 1 entry"))
    // The other side lists the replica, and can let it go.
    let served = try bench.run("peers", "T", "--json").object()["peers"] as? [[String: Any]]
    let replica = try #require(served?.first?["replica"] as? String)
    #expect(bench.run("peers", "T", "revoke", replica).status == 0)
    #expect(bench.run("peers", "T", "revoke", "xyz").status == 64)
    #expect(bench.run("peers", "S", "forget", "t").status == 0)
    #expect(bench.run("peers", "S", "forget", "t").status == 1)
    #expect(try bench.run("pending", "S", "--json").object()["entries"] as? Int == 3)
  }

  @Test("a change that a peer refused is listed, sent again and given up")
  func parked() async throws {
    let store = try bench.open("S")
    let refusing = SyncValidator(prefix: "note/") { _, _ in
      SyncRejection(code: "invalid", message: "no notes")
    }
    let peer = try StorePeer(
      bench.open("T"), options: SyncHandler.Options(validators: [refusing]))
    _ = try await store.replicator(named: "t", peer: peer).syncOnce()
    await peer.close()
    try await store.close()
    #expect(bench.run("parked", "S").lines == ["note/1\t4\tput\tinvalid\tno notes"])
    #expect(bench.run("parked", "S", "retry", "task/1").status == 1)
    #expect(bench.run("parked", "S", "retry").status == 64)
    #expect(bench.run("parked", "S", "retry", "note/1").status == 0)
    #expect(bench.run("parked", "S").output.isEmpty)
    #expect(try replay("--name", "t")["applied"] as? Int == 1)
    #expect(bench.run("get", "T", "note/1").output == "milk, bread")
  }

  @Test("a store is not replayed into itself, nor pulled from itself")
  func itself() throws {
    #expect(bench.run("replay", "S", "--to", "S").status != 0)
    bench.run("backup", "S", "C")
    #expect(bench.run("replay", "S", "--to", "C").talk.contains("same store"))
    #expect(bench.run("pull", "S", "--from", "C").talk.contains("same store"))
    #expect(bench.run("pull", "N", "--from", "absent").status == 66)
    #expect(try bench.disk.kind("N") == nil)
  }

  @Test("a store that its program has open is locked")
  func locked() throws {
    let store = try bench.open("S")
    #expect(bench.run("replay", "S", "--to", "T").status == 75)
    try store.blocking.close()
    _ = try replay()
    let target = try bench.open("T")
    #expect(bench.run("replay", "S", "--to", "T").status == 75)
    try target.blocking.close()
  }

  @Test("a URL goes to the helper before anything is touched, and a peer that is away is 69")
  func urls() throws {
    final class Seen { var arguments: [[String]] = [] }
    let seen = Seen()
    let helped = bench.run(
      ["replay", "S", "--to", "http://localhost:1/x"],
      configure: { console in
        console.runHelper = { arguments in
          seen.arguments.append(arguments)
          throw ToolHelped()
        }
      })
    #expect(helped.status == 1)
    #expect(seen.arguments == [["replay", "S", "--to", "http://localhost:1/x"]])
    for command in [
      ["replay", "S", "--to", "http://localhost:1/x"], ["diff", "S", "https://localhost:1/x"],
      ["verify", "S", "--remote", "http://localhost:1/x"],
    ] {
      let away = bench.run(
        command,
        configure: { console in
          console.openPeer = { url, token in
            #expect(token == nil && url.hasSuffix("://localhost:1/x"))
            throw PeerError(.unavailable, "nobody there")
          }
        })
      #expect(away.status == 69, "\(command)")
      #expect(away.talk.contains("nobody there"))
    }
  }

  @Test("following sends what comes until it is interrupted")
  func follow() throws {
    let looks = Counter()
    let run = bench.run(
      ["replay", "S", "--to", "T", "--follow"],
      interrupted: { bench.run("get", "T", "task/1").status == 0 || looks.next() > 5_000 })
    #expect(run.status == 130)
    #expect(bench.run("get", "T", "task/1").output == "paint")
  }
}

private struct ToolHelped: Error {}
