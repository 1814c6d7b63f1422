import Testing
import TidemarkEngine

@Suite("Commands for the past")
struct PastTests {
  private let bench = Bench.withNotes()

  @Test("at shows what stood at a sequence or on a date")
  func at() {
    #expect(bench.run("at", "S", "1", "note/1").output == "milk")
    #expect(bench.run("at", "S", "4", "note/1").output == "milk, bread")
    let own = "--own-time"
    #expect(bench.run("at", "S", "2026-01-03", "note/1", own).output == "milk")
    #expect(
      bench.run("at", "S", "2026-01-02T00:00:00Z", "--keys", own).lines
        == ["note/1", "note/2", "note/3"])
    #expect(bench.run("at", "S", "5", "--keys", "--label", "home").lines == ["task/1"])
    #expect(bench.run("at", "S", "0", "--keys").lines == [])
  }

  @Test("at of a key that was not there exits 1, of the future 64, of nonsense 64")
  func atErrors() {
    #expect(bench.run("at", "S", "5", "note/2").status == 1)
    #expect(bench.run("at", "S", "1", "task/1").status == 1)
    #expect(bench.run("at", "S", "99").status == 64)
    #expect(bench.run("at", "S", "yesterday").status == 64)
  }

  @Test("an export of a past state holds what the lines up to there left")
  func exportAt() {
    let lines = bench.run("export", "S", "--at", "3").lines
    #expect(lines.count == 3)
    #expect(lines[1].contains(#""key":"note/2","value":"call","hash":"h2""#))
    // All was committed on that day, whatever times the lines have.
    let now = bench.run("export", "S").output
    #expect(bench.run("export", "S", "--at", "2026-01-01").output == now)
    #expect(bench.run("export", "S", "--at", "2025-12-31").lines.isEmpty)
  }

  @Test("after history was dropped, an older state is refused with exit 1, the newest is there")
  func historyGone() {
    let before = bench.run("export", "S").output
    #expect(bench.run("compact", "S", "--drop-history").status == 0)
    let run = bench.run("export", "S", "--at", "3")
    #expect(run.status == 1)
    #expect(run.output.isEmpty)
    #expect(run.talk.contains("no longer kept"))
    #expect(run.talk.split(separator: "\n").count == 1)
    #expect(bench.run("export", "S").output == before)
    #expect(bench.run("verify", "S").status == 0)
  }

  @Test("a history has every entry in order, with sequence and operation id, deletes too")
  func exportHistory() throws {
    let objects = try bench.run("export", "S", "--history").objects()
    #expect(objects.map { $0["seq"] as? Int } == [1, 2, 3, 4, 5, 6])
    #expect(objects.map { $0["op"] as? String } == ["put", "put", "put", "put", "delete", "put"])
    let replica = try bench.run("stat", "S", "--output", "json").object()["replica_id"] as? String
    #expect(objects[3]["op_id"] as? String == "\(replica ?? "").4")
    let history = bench.run("export", "S", "--history").output
    let copied = bench.run("import", "copy", input: history)
    #expect(copied.status == 0)
    #expect(!copied.talk.contains("passed over"))
    #expect(bench.run("export", "copy").output == bench.run("export", "S").output)
  }

  @Test("history lists the versions of a key, newest first")
  func history() throws {
    let lines = bench.run("history", "S", "note/2").lines
    #expect(lines[0] == "5\t2026-01-05T00:00:00Z\tdelete")
    #expect(lines[1] == "2\t2026-01-02T00:00:00Z\tput\t4\tinbox")
    #expect(
      bench.run("history", "S", "note/1", "--limit", "1", "--values").lines
        == ["4\t2026-01-04T00:00:00Z\tput\t11\tinbox\tmilk, bread"])
    #expect(bench.run("history", "S", "never").status == 1)
    #expect(
      try bench.run("history", "S", "note/1", "--output", "json").names() == [
        "versions", "versions.committed", "versions.key", "versions.labels", "versions.op",
        "versions.sequence", "versions.size", "versions.time",
      ])
  }

  @Test("a history with a limit does not look at what lies behind it")
  func limitedHistory() throws {
    bench.run("put", "S", "note/1", "newest")
    // With a sorted run, opening needs nothing of the log that it covers.
    bench.run("snapshot", "S")
    let status = try bench.run("stat", "S", "--output", "json").object()
    let segments = try #require(status["segments"] as? [[String: Any]])
    #expect(segments.count == 2)
    let name = try #require(segments[0]["file"] as? String)
    let file = try bench.disk.open("S/" + name, .readWrite)
    let length = try file.length() - 8192
    try file.writeFully([UInt8](repeating: 0xff, count: length).rawSpan, at: 8192)
    file.close()
    let newest = bench.run("history", "S", "note/1", "--limit", "1")
    #expect(newest.status == 0, "\(newest.talk)")
    #expect(newest.lines.count == 1)
    #expect(bench.run("history", "S", "note/1", "--limit", "2").status == 65)
  }

  @Test("diff lists what was added, removed and changed, and exits 2")
  func diff() throws {
    let run = bench.run("diff", "S", "2", "6")
    #expect(run.status == 2)
    #expect(run.lines == ["~\tnote/1\tvalue, labels", "-\tnote/2", "+\tnote/3", "+\ttask/1"])
    #expect(run.talk == "2 added, 1 removed, 1 changed\n")
    let back = bench.run("diff", "S", "6", "2")
    #expect(back.lines == ["~\tnote/1\tvalue, labels", "+\tnote/2", "-\tnote/3", "-\ttask/1"])
    let same = bench.run("diff", "S", "4", "4")
    #expect(same.status == 0 && same.output.isEmpty)
    let objects = try bench.run("diff", "S", "2", "6", "--output", "jsonl").objects()
    #expect(Set(objects[0].keys) == ["key", "change", "from", "to", "changed"])
    #expect(bench.run("diff", "S", "2", "6", "--prefix", "task").lines == ["+\ttask/1"])
  }

  @Test("a key that was written again with the same content is no difference")
  func rewritten() {
    bench.run("import", "S", input: #"{"key":"task/1","value":"paint","labels":["home"]}"#)
    #expect(bench.run("diff", "S", "6", "7").status == 0)
    bench.run("import", "S", input: #"{"key":"task/1","value":"paint","labels":["work"]}"#)
    #expect(bench.run("diff", "S", "6", "8").lines == ["~\ttask/1\tlabels"])
  }

  @Test("tail shows the last entries, or those after a moment")
  func tail() throws {
    let last = try #require(try committed(6))
    #expect(
      bench.run("tail", "S", "-n", "2").lines == [
        "5\t2026-01-05T00:00:00Z\tdelete\tnote/2", "6\t\(last)\tput\tnote/3\t",
      ])
    #expect(bench.run("tail", "S", "--since", "0").lines.count == 6)
    #expect(bench.run("tail", "S", "--since", "4").lines.count == 2)
    #expect(bench.run("tail", "S", "--since", "2", "--prefix", "task/").lines.count == 1)
    #expect(bench.run("tail", "S", "--follow", "--output", "json").status == 64)
  }

  private func committed(_ sequence: Int) throws -> String? {
    try bench.run("tail", "S", "--since", "\(sequence - 1)", "--output", "jsonl").objects().first?[
      "committed"] as? String
  }

  @Test("tail that follows shows what another program writes, until it is interrupted")
  func follow() throws {
    let looks = Counter()
    let run = bench.run("tail", "S", "--follow", "--since", "6", "--output", "jsonl") { [bench] in
      let look = looks.next()
      if look == 2 { _ = bench.run("put", "S", "new", "value") }
      return look > 6
    }
    #expect(run.status == 130)
    #expect(try run.objects().map { $0["key"] as? String } == ["new"])
  }

  @Test("tail behind a sequence that is not reached yet is refused, as at is, and warns of nothing")
  func future() {
    for arguments in [["--since", "7"], ["--since", "18446744073709551615", "--follow"]] {
      let looks = Counter()
      let run = bench.run(["tail", "S"] + arguments) { looks.next() > 3 }
      #expect(run.status == bench.run("at", "S", "7").status)
      #expect(run.status == 64)
      #expect(run.talk.contains("is not reached yet; the newest is 6"), "\(run.talk)")
      #expect(!run.talk.contains("crash"))
    }
    #expect(bench.run("tail", "S", "--since", "6").status == 0)
    #expect(bench.run("tail", "S", "-n", "18446744073709551615").lines.count == 6)
  }

  @Test("explain tells who wrote a key and why it is on disk")
  func explain() throws {
    let text = bench.run("explain", "S", "note/1").output
    #expect(text.contains("put at sequence 4"))
    #expect(text.contains("1 older one kept"))
    #expect(text.contains("drop-history"))
    #expect(bench.run("explain", "S", "note/2").output.contains("tombstone"))
    #expect(bench.run("explain", "S", "never").status == 1)
    #expect(
      try bench.run("explain", "S", "note/1", "--output", "json").names() == [
        "base", "entry", "entry.committed", "entry.key", "entry.labels", "entry.op",
        "entry.sequence", "entry.size", "entry.time", "file", "frame_offset", "older_bytes",
        "older_versions", "oldest_sequence", "op_id", "present", "reasons", "value_sequence",
        "written_here",
      ])
  }
}
