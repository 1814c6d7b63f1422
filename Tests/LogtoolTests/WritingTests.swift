import Testing
import Tidemark
import TidemarkEngine

@Suite("Writing commands")
struct WritingTests {
  private let bench = Bench.withNotes()

  @Test("put writes a key with everything that can be given along")
  func put() throws {
    let run = bench.run(
      "put", "S", "k", "v", "--label", "b", "--label", "a", "--label", "a", "--time",
      "2026-02-03T04:05:06+01:00", "--hash", "etag", "--max-age", "30", "--class", "cache",
      "--durability", "durable", "--output", "json")
    #expect(try run.names() == ["applied", "sequence"])
    #expect(try run.object()["sequence"] as? Int == 7)
    let object = try bench.run("get", "S", "k", "--output", "json").object()
    #expect(object["labels"] as? [String] == ["a", "b"])
    #expect(object["time"] as? String == "2026-02-03T03:05:06Z")
    #expect(object["hash"] as? String == "etag")
    #expect(object["max_age"] as? Int == 30)
    #expect(object["class"] as? String == "cache")
  }

  @Test("a key that is the library's is not written and not deleted")
  func reserved() {
    // In base64 a key may have any bytes: this one begins with \0tidemark/.
    let key = "AHRpZGVtYXJrL3N0YWdlZC9h"
    for command in [["put", "S", key, "v"], ["delete", "S", key]] {
      let run = bench.run(command + ["--key-base64"])
      #expect(run.status == 64)
      #expect(run.talk.contains("are the library's"))
    }
  }

  @Test("the value comes from the argument, standard input or a file, and from one of them")
  func values() {
    #expect(bench.run("put", "S", "k", "-", input: "from input\n").status == 0)
    #expect(bench.run("get", "S", "k").output == "from input\n")
    #expect(bench.run("put", "S", "k", "").status == 0)
    #expect(bench.run("get", "S", "k").output == "")
    #expect(bench.run("put", "S", "k").status == 64)
    #expect(bench.run("put", "S", "k", "v", "--value-file", "f").status == 64)
    #expect(bench.run("put", "S", "k", "--value-file", "/nowhere").status == 1)
  }

  @Test("a conditional put that finds another state changes nothing and exits 1")
  func conditions() {
    #expect(bench.run("put", "S", "task/1", "x", "--if-absent").status == 1)
    #expect(bench.run("put", "S", "task/1", "x", "--if-sequence", "2").status == 1)
    #expect(bench.run("get", "S", "task/1").output == "paint")
    #expect(bench.run("put", "S", "task/1", "x", "--if-sequence", "3").status == 0)
    #expect(bench.run("put", "S", "new", "x", "--if-absent").status == 0)
    #expect(bench.run("get", "S", "task/1").output == "x")
  }

  @Test("delete removes keys, and exits 1 when none of them was there")
  func delete() throws {
    #expect(bench.run("delete", "S", "note/1", "absent").status == 0)
    #expect(bench.run("get", "S", "note/1").status == 1)
    let again = bench.run("delete", "S", "note/1")
    #expect(again.status == 1)
    #expect(again.talk.contains("not in the store"))
    #expect(try bench.run("stat", "S", "--output", "json").object()["sequence"] as? Int == 7)
    #expect(bench.run("delete", "S").status == 64)
  }

  @Test("delete takes the list that scan prints, with lines or NUL bytes")
  func deleteList() {
    let list = bench.run("scan", "S", "--prefix", "note/", "--keys", "-0")
    let planned = bench.run(
      "delete", "S", "--keys-from", "-", "-0", "--dry-run", input: list.output)
    #expect(planned.lines == ["note/1", "note/3"])
    #expect(bench.run("scan", "S", "--keys").lines.count == 3)
    #expect(bench.run("delete", "S", "--keys-from", "-", "-0", input: list.output).status == 0)
    #expect(bench.run("scan", "S", "--keys").lines == ["task/1"])
    #expect(bench.run("delete", "S", "--keys-from", "-", input: "task/1\n").status == 0)
    #expect(bench.run("scan", "S", "--keys").lines == [])
  }

  @Test("delete takes a prefix and labels, and lists with --dry-run what they find")
  func deleteByPrefix() {
    for key in ["note/4", "task/2"] { bench.run("put", "S", key, "v", "--label", "inbox") }
    let wanted = ["delete", "S", "--prefix", "note/", "--label", "inbox"]
    #expect(bench.run(wanted + ["--dry-run"]).lines == ["note/1", "note/4"])
    #expect(bench.run("scan", "S", "--keys").lines.count == 5)
    let run = bench.run(wanted + ["--output", "json"])
    #expect(run.output == #"{"applied":2,"sequence":10}"# + "\n", "\(run.talk)")
    #expect(bench.run("scan", "S", "--keys").lines == ["note/3", "task/1", "task/2"])
    let again = bench.run(wanted)
    #expect(again.status == 1 && again.talk.contains("nothing was deleted"))
    #expect(bench.run("delete", "S", "--not-label", "home").status == 0)
    #expect(bench.run("scan", "S", "--keys").lines == ["task/1"])
    for refused in [
      ["--prefix", ""], ["task/1", "--prefix", "t"], ["--keys-from", "-", "--label", "l"],
    ] {
      #expect(bench.run(["delete", "S"] + refused).status == 64, "\(refused)")
    }
    #expect(bench.run("scan", "S", "--keys").lines == ["task/1"])
  }

  @Test("create makes an empty store where none is, and leaves one that is there alone")
  func create() throws {
    let made = bench.run("create", "C", "--output", "json")
    #expect(made.status == 0)
    let id = try bench.run("stat", "C", "--output", "json").object()["store_id"] as? String
    #expect(try made.object()["store_id"] as? String == id)
    #expect(bench.run("scan", "C").output.isEmpty)
    #expect(bench.run("put", "C", "k", "v").status == 0)
    let before = try bench.files(in: "C")
    let again = bench.run("create", "C")
    #expect(again.status == 1 && again.talk.contains("there is a store at C already"))
    #expect(try bench.files(in: "C") == before)
  }

  @Test("snapshot of an empty store writes nothing, and says so")
  func emptySnapshot() throws {
    bench.run("import", "E")
    #expect(bench.run("snapshot", "E").talk.contains("needs no checkpoint"))
    for format in ["json", "jsonl"] {
      let run = bench.run("snapshot", "E", "--output", format)
      #expect(run.output == #"{"file":null,"sequence":0,"bytes":0}"# + "\n")
    }
  }

  @Test("compact tells what it did, and with --dry-run does nothing")
  func compact() throws {
    let names = [
      "attachment_bytes_freed", "attachments_removed", "bytes_after", "bytes_before",
      "dropped_entries",
      "dropped_tombstones", "dry_run", "held", "history_from", "segments_after", "segments_before",
      "segments_rewritten",
    ]
    let planned = bench.run("compact", "S", "--drop-history", "--dry-run", "--output", "json")
    #expect(try planned.names() == names)
    #expect(try planned.object()["dropped_entries"] as? Int == 2)
    #expect(bench.run("at", "S", "1", "note/1").status == 0)
    let before = bench.run("export", "S").output
    for arguments in [[], ["--dense"], ["--drop-history"], ["--drop-history", "--dense"]] {
      let run = bench.run(["compact", "S", "--output", "json"] + arguments)
      #expect(run.status == 0)
      #expect(try run.names() == names)
      #expect(bench.run("export", "S").output == before)
      #expect(bench.run("verify", "S").status == 0)
    }
  }

  @Test("snapshot writes a sorted run that covers everything")
  func snapshot() throws {
    let run = bench.run("snapshot", "S", "--output", "json")
    #expect(try run.names() == ["bytes", "file", "sequence"])
    #expect(try run.object()["sequence"] as? Int == 6)
    let object = try bench.run("stat", "S", "--output", "json").object()
    let runs = try #require(object["index_runs"] as? [[String: Any]])
    #expect(runs.last?["file"] as? String == (try run.object()["file"] as? String))
    #expect(bench.run("scan", "S", "--keys").lines.count == 3)
  }

  @Test("a healthy store passes verify and doctor")
  func healthy() throws {
    for command in ["verify", "doctor"] {
      let run = bench.run(command, "S", "--output", "json")
      #expect(run.status == 0)
      #expect(
        try run.names() == [
          "attachment_bytes", "attachments", "bytes", "checksums_only", "entries", "findings",
          "healthy", "holes", "index_runs",
          "last_sequence",
          "leftovers", "recorded", "segments",
        ])
      #expect(try run.object()["entries"] as? Int == 6)
    }
  }

  @Test("every dry run works beside a running writer, and after a crash, and changes nothing")
  func dryRunBesideWriter() throws {
    let store = try bench.open("S")
    try store.blocking.put("note/1", "newer")
    let before = try bench.files(in: "S")
    for arguments in [
      ["compact", "S", "--drop-history", "--dry-run"], ["delete", "S", "note/1", "--dry-run"],
      ["replay", "S", "--to", "T", "--dry-run"], ["import", "S", "--dry-run"],
    ] {
      let run = bench.run(arguments)
      #expect(run.status == 0, "\(arguments): \(run.talk)")
      #expect(try bench.files(in: "S") == before, "\(arguments)")
    }
    // Data that the writer has yet to seal counts.
    let planned = try bench.run("compact", "S", "--drop-history", "--dry-run", "--output", "json")
      .object()
    #expect(planned["dropped_entries"] as? Int == 3)
    #expect(planned["dropped_tombstones"] as? Int == 1)
    try store.blocking.close()
    let done = try bench.run("compact", "S", "--drop-history", "--output", "json").object()
    #expect(done["dropped_entries"] as? Int == 3)
    #expect(done["dropped_tombstones"] as? Int == 1)
  }

  @Test("reading commands change nothing in the store's directory")
  func readOnly() throws {
    func state() throws -> [String: [UInt8]] { try bench.files(in: "S") }
    let before = try state()
    for arguments in [
      ["get", "S", "note/1"], ["scan", "S"], ["labels", "S"], ["export", "S"],
      ["history", "S", "note/1"], ["at", "S", "1"], ["diff", "S", "1", "2"], ["tail", "S"],
      ["explain", "S", "note/1"], ["stat", "S"], ["verify", "S"], ["doctor", "S"],
      ["compact", "S", "--dry-run"], ["delete", "S", "note/1", "--dry-run"],
      ["replay", "S", "--to", "T", "--dry-run"], ["pending", "S"], ["pending", "S", "--list"],
      ["parked", "S"], ["peers", "S"], ["delete", "S", "--prefix", "note/", "--dry-run"],
      ["undo", "S", "--since", "1", "--dry-run"], ["completions", "bash"], ["man"],
    ] {
      bench.run(arguments)
      #expect(try state() == before, "\(arguments)")
    }
    #expect(try bench.disk.kind("T") == nil)
  }
}
