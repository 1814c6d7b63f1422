import Testing
import Tidemark
import TidemarkEngine

@Suite("Replay")
struct ReplayTests {
  private let bench = Bench.withNotes()

  private func replay(_ arguments: String..., from source: String = "S", to target: String = "T")
    throws -> [String: Any]
  {
    let run = bench.run(["replay", source, "--to", target, "--output", "json"] + arguments)
    #expect(run.status == 0, "\(run.talk)")
    return try run.object()
  }

  private func sequence(_ store: String) throws -> Int? {
    try bench.run("stat", store, "--output", "json").object()["sequence"] as? Int
  }

  @Test("every entry arrives in order, with everything that belongs to it and its origin")
  func everything() throws {
    let run = bench.run("replay", "S", "--to", "T", "--output", "json")
    #expect(
      try run.names() == [
        "echoes", "from", "mark_before", "sent", "target_sequence", "to_send", "until",
      ])
    #expect(try run.object()["sent"] as? Int == 6)
    #expect(try sequence("T") == 6)
    #expect(bench.run("export", "T").output == bench.run("export", "S").output)
    // Their operation ids are those of the source, so the histories are the same.
    #expect(
      bench.run("export", "T", "--history").output == bench.run("export", "S", "--history").output)
  }

  @Test("a second run sends only what is new")
  func again() throws {
    _ = try replay()
    #expect(try replay()["sent"] as? Int == 0)
    bench.run("put", "S", "more", "1")
    bench.run("delete", "S", "note/1")
    #expect(try replay()["sent"] as? Int == 2)
    #expect(bench.run("export", "T").output == bench.run("export", "S").output)
    #expect(try sequence("T") == 8)
  }

  @Test("from and until narrow, and nothing is sent twice")
  func narrow() throws {
    #expect(try replay("--until", "2")["sent"] as? Int == 2)
    #expect(try replay("--from", "1", "--until", "4")["sent"] as? Int == 2)
    #expect(try replay("--from", "6")["sent"] as? Int == 1)
    #expect(try replay()["sent"] as? Int == 0)
    #expect(try sequence("T") == 5)
  }

  @Test("a dry run counts, and creates no target")
  func dryRun() throws {
    #expect(try replay("--dry-run")["to_send"] as? Int == 6)
    #expect(bench.run("stat", "T").status == 66)
    _ = try replay("--until", "4")
    #expect(try replay("--dry-run")["to_send"] as? Int == 2)
    #expect(try sequence("T") == 4)
  }

  @Test("after a compaction of the target nothing is sent twice")
  func compactedTarget() throws {
    bench.run("delete", "S", "task/1")
    _ = try replay()
    // This drops the tombstones, which carry the newest origins.
    bench.run("compact", "T", "--drop-history")
    #expect(try replay()["sent"] as? Int == 0)
    #expect(bench.run("export", "T").output == bench.run("export", "S").output)
  }

  @Test("a target that was restored from a backup gets what it lacks again")
  func restoredTarget() throws {
    _ = try replay("--until", "3")
    let old = try bench.files(in: "T")
    _ = try replay()
    try bench.restore(old, to: "T")
    #expect(try sequence("T") == 3)
    #expect(try replay()["sent"] as? Int == 3)
    #expect(bench.run("export", "T").output == bench.run("export", "S").output)
  }

  @Test("deletes that the source no longer has are not passed over in silence")
  func droppedTombstones() throws {
    _ = try replay("--until", "4")
    bench.run("compact", "S", "--drop-history")
    let run = bench.run("replay", "S", "--to", "T")
    #expect(run.status == 1)
    #expect(run.talk.contains("replay into a new store"))
    #expect(bench.run("replay", "S", "--to", "U").status == 0)
    #expect(bench.run("export", "U").output == bench.run("export", "S").output)
  }

  @Test("what the target wrote itself does not come back to it")
  func echoes() throws {
    _ = try replay()
    bench.run("put", "T", "own", "1")
    #expect(try replay(from: "T", to: "S")["sent"] as? Int == 1)
    #expect(try replay()["sent"] as? Int == 0)
    #expect(try replay(from: "T", to: "S")["sent"] as? Int == 0)
    #expect(bench.run("export", "T").output == bench.run("export", "S").output)
  }

  @Test("a touch whose key the target deleted brings its value along")
  func touches() throws {
    _ = try replay()
    bench.run("import", "S", input: #"{"op":"touch","key":"note/3","max_age":9}"#)
    _ = try replay()
    #expect(try bench.run("history", "T", "note/3", "--output", "jsonl").objects().count == 2)
    bench.run("delete", "T", "note/3")
    bench.run("import", "S", input: #"{"op":"touch","key":"note/3","max_age":10}"#)
    #expect(try replay()["sent"] as? Int == 1)
    let object = try bench.run("get", "T", "note/3", "--output", "json").object()
    #expect(object["max_age"] as? Int == 10)
    #expect(object["value"] as? String == "\u{0}\n")
    #expect(try replay()["sent"] as? Int == 0)
  }

  @Test("the largest numbers there are end no run, as bounds or as an origin in the target")
  func largest() throws {
    let largest = "18446744073709551615"
    #expect(try replay("--from", largest, "--until", largest)["sent"] as? Int == 0)
    #expect(try replay("--until", largest)["sent"] as? Int == 6)
    let source = try bench.open("S")
    let replica = try source.status.replicaID
    try source.blocking.close()
    let target = try bench.open("T")
    let origin = Origin(replica: replica, sequence: .max)
    try target.blocking.put("forged", "1", options: PutOptions(origin: origin))
    try target.blocking.close()
    #expect(try replay()["sent"] as? Int == 0)
  }

  @Test("a store is not replayed into itself")
  func itself() {
    for target in ["S", "S/", "./S"] {
      let run = bench.run("replay", "S", "--to", target)
      #expect(run.status != 0)
      #expect(run.talk.contains("same store") || run.talk.contains("locked"))
    }
  }

  @Test("a source that its program has open is read without a copy of the mark")
  func openSource() throws {
    let store = try bench.open("S")
    try store.blocking.put("seven", "7")
    try store.blocking.flush()
    #expect(try replay()["sent"] as? Int == 7)
    #expect(try replay()["sent"] as? Int == 0)
    #expect(store.engine.lastSequence == 7)
    try store.blocking.close()
    #expect(try replay()["sent"] as? Int == 0)
  }

  @Test("batches of the source stay whole in the target")
  func batches() throws {
    let text = (1...2500).map { "{\"key\":\"k\($0)\",\"value\":\"v\"}\n" }.joined()
    bench.run("import", "S", input: text)
    let polls = Polls()
    let run = bench.run("replay", "S", "--to", "T") { polls.next() >= 1 }
    #expect(run.status == 130)
    // Six lines are one batch, the next thousand another.
    #expect(try sequence("T") == 1006)
    #expect(bench.run("replay", "S", "--to", "T").status == 0)
    #expect(bench.run("export", "T").output == bench.run("export", "S").output)
  }

  private typealias Polls = Counter
}
