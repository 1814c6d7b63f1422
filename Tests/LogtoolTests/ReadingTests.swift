import Foundation
import Testing
import Tidemark
import TidemarkEngine

@Suite("Reading commands")
struct ReadingTests {
  private let bench = Bench.withNotes()

  @Test("get gives the bytes of the value and nothing else")
  func get() {
    let run = bench.run("get", "S", "note/3")
    #expect(run.bytes == [0, 10])
    #expect(run.status == 0 && run.talk.isEmpty)
  }

  @Test("get of a key that is not there or deleted exits 1 with one line")
  func getAbsent() {
    for key in ["nothing", "note/2"] {
      let run = bench.run("get", "S", key)
      #expect(run.status == 1 && run.bytes.isEmpty)
      #expect(run.talk == "logtool: the key is not in the store\n")
    }
  }

  @Test("get as JSON has everything that is known of the entry")
  func getJSON() throws {
    let run = bench.run("get", "S", "note/1", "--output", "json")
    #expect(
      try run.names() == ["committed", "key", "labels", "sequence", "size", "time", "value"])
    let object = try run.object()
    #expect(object["value"] as? String == "milk, bread")
    #expect(object["time"] as? String == "2026-01-04T00:00:00Z")
  }

  @Test("scan lists the keys in byte order, one a line")
  func scanKeys() {
    #expect(bench.run("scan", "S", "--keys").output == "note/1\nnote/3\ntask/1\n")
    #expect(bench.run("scan", "S", "--keys", "--reverse").output == "task/1\nnote/3\nnote/1\n")
    #expect(bench.run("scan", "S", "--keys", "-0").output == "note/1\0note/3\0task/1\0")
  }

  @Test("prefix, range, labels, order and limit narrow together")
  func scanConditions() {
    #expect(bench.run("scan", "S", "--keys", "--prefix", "note/").lines == ["note/1", "note/3"])
    #expect(
      bench.run("scan", "S", "--keys", "--prefix", "note/", "--limit", "1").lines == ["note/1"])
    #expect(bench.run("scan", "S", "--keys", "--from", "note/2").lines == ["note/3", "task/1"])
    #expect(bench.run("scan", "S", "--keys", "--to", "note/3").lines == ["note/1"])
    #expect(
      bench.run("scan", "S", "--keys", "--prefix", "note/", "--from", "note/2", "--to", "z").lines
        == ["note/3"])
    #expect(bench.run("scan", "S", "--keys", "--label", "inbox").lines == ["note/1"])
    #expect(bench.run("scan", "S", "--keys", "--label", "home").lines == ["task/1"])
    #expect(
      bench.run("scan", "S", "--keys", "--any-label", "home", "--any-label", "inbox").lines
        == ["note/1", "task/1"])
    #expect(
      bench.run(
        "scan", "S", "--keys", "--any-label", "home", "--any-label", "inbox",
        "--not-label", "home"
      ).lines == ["note/1"])
    #expect(bench.run("scan", "S", "--keys", "--label", "home", "--label", "inbox").lines == [])
    #expect(
      bench.run("scan", "S", "--keys", "--order", "sequence").lines
        == ["task/1", "note/1", "note/3"])
  }

  @Test("a scan that was cut goes on behind its cursor, in every order")
  func scanCursor() throws {
    for order in ["key", "sequence", "time"] {
      for direction in [[], ["--reverse"]] {
        let whole = bench.run(["scan", "S", "--keys", "--order", order] + direction).lines
        var found: [String] = []
        var after: [String] = []
        for _ in 0..<4 {
          let run = bench.run(
            ["scan", "S", "--keys", "--output", "jsonl", "--limit", "1", "--order", order]
              + direction + after)
          let objects = try run.objects()
          found += objects.compactMap { $0["key"] as? String }
          guard let cursor = objects.last?["cursor"] as? String else { break }
          after = ["--after", cursor]
        }
        #expect(found == whole, "\(order) \(direction)")
      }
    }
    #expect(bench.run("scan", "S", "--after", "nonsense").status == 64)
    #expect(bench.run("scan", "S", "--after", "c2E=", "--order", "time").status == 64)
  }

  @Test("scan's JSON has its names, with and without values")
  func scanJSON() throws {
    let common = [
      "at", "cursor", "entries", "entries.committed", "entries.key", "entries.labels",
      "entries.sequence", "entries.size", "entries.time",
    ]
    #expect(try bench.run("scan", "S", "--output", "json").names() == common)
    #expect(
      try bench.run("scan", "S", "--values", "--output", "json").names()
        == common + ["entries.value"])
    #expect(try bench.run("scan", "S", "--keys", "--output", "jsonl").objects().count == 3)
    #expect(
      bench.run("scan", "S", "--prefix", "none", "--output", "json").output
        == "{\"entries\":[],\"at\":6,\"cursor\":null}\n")
  }

  @Test("keys that are not text are base64 in JSON, and on the command line if asked for")
  func binaryKeys() throws {
    bench.run("put", "S", "--key-base64", "/wA=", "x")
    let objects = try bench.run("scan", "S", "--output", "jsonl").objects()
    #expect(objects.last?["key_base64"] as? String == "/wA=")
    #expect(objects.last?["key"] == nil)
    #expect(bench.run("get", "S", "/wA=", "--key-base64").output == "x")
    #expect(bench.run("scan", "S", "--keys", "--key-base64").lines.last == "/wA=")
    #expect(bench.run("scan", "S", "--keys", "--from", "z").bytes == [0xff, 0, 10])
    #expect(bench.run("get", "S", "?", "--key-base64").status == 64)
  }

  @Test("on a terminal control bytes are escaped, in a pipe they are not")
  func escapes() {
    bench.run("put", "S", "bad\u{1b}[31mkey", "v\u{1b}")
    #expect(bench.run("scan", "S", "--prefix", "bad", "--keys").lines == ["bad\u{1b}[31mkey"])
    var terminal = bench
    terminal.isTerminal = true
    #expect(terminal.run("scan", "S", "--prefix", "bad", "--keys").lines == ["bad\\x1b[31mkey"])
    #expect(terminal.run("get", "S", "bad\u{1b}[31mkey").output == "v\\x1b\n")
  }

  @Test("the library's own keys are listed where they are asked for only")
  func libraryKeys() throws {
    let store = try bench.open("S")
    for name in ["collection/images/", "staged/a", "x"] {
      var batch = OperationBatch()
      try batch.add(.put, key: Array("\0tidemark/\(name)".utf8).rawSpan, value: [1].rawSpan)
      _ = try store.engine.stage(batch)
    }
    try store.blocking.put([0, 1], "2")
    try store.blocking.close()
    let visible = ["\0\u{1}", "note/1", "note/3", "task/1"]
    let own = ["collection/images/", "staged/a", "x"].map { "\0tidemark/\($0)" }
    #expect(bench.run("scan", "S", "--keys").lines == visible)
    #expect(bench.run("scan", "S", "--keys", "--reverse").lines == visible.reversed())
    #expect(bench.run("scan", "S", "--order", "time").lines.count == 4)
    #expect(bench.run("at", "S", "9", "--keys").lines.count == 3)
    #expect(bench.run("scan", "S", "--keys", "--limit", "2").lines == ["\0\u{1}", "note/1"])
    let page = try bench.run("scan", "S", "--limit", "1", "--output", "json").object()
    let cursor = try #require(page["cursor"] as? String)
    #expect(
      bench.run("scan", "S", "--keys", "--after", cursor).lines == ["note/1", "note/3", "task/1"])
    #expect(
      bench.run("scan", "S", "--keys", "--library-keys").lines
        == [visible[0]] + own + visible.dropFirst())
    let prefix = Data("\0tidemark/s".utf8).base64EncodedString()
    let asked = ["--key-base64", "--prefix", prefix]
    for (arguments, most, least) in [
      (["scan", "S"], 7, 4), (["export", "S"], 7, 4), (["export", "S", "--history"], 10, 7),
      (["tail", "S", "--since", "0"], 10, 7), (["diff", "S", "6", "10"], 4, 1),
      (["at", "S", "9"], 6, 3),
    ] {
      #expect(bench.run(arguments).lines.count == least, "\(arguments)")
      #expect(bench.run(arguments + ["--library-keys"]).lines.count == most, "\(arguments)")
      #expect(bench.run(arguments + asked).lines.count == 1, "\(arguments)")
    }
  }

  @Test("prose for a terminal is broken between words, and is the same in a pipe")
  func prose() {
    var terminal = bench
    terminal.isTerminal = true
    func words(_ text: String) -> [Substring] { text.split { $0 == " " || $0 == "\n" } }
    for arguments in [["explain", "S", "note/2"], ["explain", "S", "note/1"], ["stat", "S"]] {
      let shown = terminal.run(arguments + ["--colour", "never"])
      #expect(words(shown.output) == words(bench.run(arguments).output))
      #expect(shown.lines.allSatisfy { $0.count <= 80 }, "\(shown.output)")
    }
    for arguments in [["tail", "S", "--since", "99"], ["tail", "S", "--since", "12345"]] {
      let shown = terminal.run(arguments + ["--colour", "never"]).talk
      #expect(shown.count > 80)
      #expect(words(shown) == words(bench.run(arguments).talk))
      #expect(shown.split(separator: "\n").allSatisfy { $0.count <= 80 }, "\(shown)")
    }
  }

  @Test("labels are listed with how many keys carry each")
  func labels() throws {
    #expect(bench.run("labels", "S").output == "home\t1\ninbox\t1\n")
    #expect(bench.run("labels", "S", "--prefix", "in").output == "inbox\t1\n")
    #expect(
      try bench.run("labels", "S", "--output", "json").names()
        == ["labels", "labels.keys", "labels.label"])
  }

  @Test("export gives back every key with value, labels and hash, and import takes it")
  func export() {
    let exported = bench.run("export", "S")
    #expect(
      exported.lines.first
        == #"{"op":"put","key":"note/1","value":"milk, bread","labels":["inbox"],"#
        + #""time":"2026-01-04T00:00:00Z"}"#)
    #expect(exported.lines.count == 3)
    #expect(bench.run("import", "copy", input: exported.output).status == 0)
    #expect(bench.run("export", "copy").output == exported.output)
    #expect(bench.run("export", "S", "--prefix", "task").lines.count == 1)
    #expect(bench.run("export", "S", "--label", "inbox").lines.count == 1)
  }

  @Test("stat's JSON has its names, and its sums agree")
  func stat() throws {
    let run = bench.run("stat", "S", "--output", "json")
    #expect(
      try run.names() == [
        "attachments", "attachments.bytes", "attachments.count", "bytes", "bytes.ballast",
        "bytes.dead", "bytes.history", "bytes.index", "bytes.live",
        "bytes.log", "bytes.pinned", "cached", "cached.bytes", "cached.keys", "closed_cleanly",
        "damage", "dropped_through", "durable",
        "durable.file", "durable.offset", "durable.sequence", "encryption", "epoch", "format",
        "held", "history_from",
        "index_runs", "index_runs.bytes", "index_runs.file", "index_runs.sequence", "indexes",
        "keys", "replica_id",
        "retention", "retention.age_seconds", "retention.bytes",
        "retention.versions_per_key", "segments", "segments.bytes", "segments.compacted",
        "segments.file", "segments.first_sequence", "segments.last_sequence",
        "segments.sealed", "segments.superseded", "sequence", "store_id",
      ])
    let object = try run.object()
    #expect(object["keys"] as? Int == 3)
    #expect(object["sequence"] as? Int == 6)
    let bytes = try #require(object["bytes"] as? [String: Int])
    let parts = ["live", "history", "dead", "pinned"].compactMap { bytes[$0] }
    #expect(parts.reduce(0, +) == bytes["log"])
    #expect((object["durable"] as? [String: Any])?["sequence"] as? Int == 6)
  }

  @Test("stat for people names every part")
  func statText() {
    let names = bench.run("stat", "S").lines.map { String($0.prefix(11)) }
    #expect(
      names.map { $0.trimmingPrefix(while: \.isWhitespace).split(separator: " ").first ?? "" }
        == [
          "keys", "sequence", "log", "live", "history", "dead", "pinned", "index", "ballast",
          "durable", "history", "retention", "closed", "store", "replica",
        ])
  }
}
