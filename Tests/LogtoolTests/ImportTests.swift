import Testing
import TidemarkEngine

@Suite("Import")
struct ImportTests {
  private let bench = Bench()

  private func lines(_ range: ClosedRange<Int>) -> String {
    range.map { "{\"key\":\"k\($0)\",\"value\":\"v\($0)\"}\n" }.joined()
  }

  private func sequence() throws -> Int? {
    try bench.run("stat", "S", "--output", "json").object()["sequence"] as? Int
  }

  @Test("every line takes one sequence, deletes of absent keys and touches too")
  func sequences() throws {
    let run = bench.run(
      "import", "S",
      input: """
        {"op":"delete","key":"absent"}
        {"key":"a","value":"1"}

        {"op":"touch","key":"a","max_age":5}
        {"key":"a","value":"2"}
        {"op":"delete","key":"a"}
        """)
    #expect(run.status == 0)
    #expect(try sequence() == 5)
    let operations = try bench.run("export", "S", "--history").objects().map { $0["op"] as? String }
    #expect(operations == ["delete", "put", "touch", "put", "delete"])
  }

  @Test("labels that are no text survive export and import, and are told as base64")
  func binaryLabels() throws {
    let line =
      #"{"op":"put","key":"k","value":"v","labels":["a","é"],"labels_base64":["/w==","/wD/"]}"#
    #expect(bench.run("import", "S", input: line + "\n").status == 0)
    let exported = bench.run("export", "S").output
    #expect(exported == line + "\n")
    #expect(bench.run("import", "copy", input: exported).talk.contains("imported 1 entry"))
    #expect(bench.run("export", "copy").output == exported)
    for command in [["get", "S", "k"], ["history", "S", "k"], ["scan", "S"]] {
      let run = bench.run(command + ["--output", "jsonl"])
      let object = try #require(try run.objects().first)
      #expect(object["labels"] as? [String] == ["a", "é"])
      #expect(object["labels_base64"] as? [String] == ["/w==", "/wD/"])
    }
    let labels = try bench.run("labels", "S", "--output", "jsonl").objects()
    #expect(labels.compactMap { $0["label"] as? String } == ["a", "é"])
    #expect(Set(labels.compactMap { $0["label_base64"] as? String }) == ["/w==", "/wD/"])
  }

  @Test("labels of a touch or a delete, which have none, stop the import like a value does")
  func unwantedLabels() throws {
    for operation in ["touch", "delete"] {
      let text = lines(1...1) + #"{"op":"\#(operation)","key":"k1","labels":["new"]}"#
      let run = bench.run("import", "S", input: text)
      #expect(run.status == 1)
      #expect(run.talk.contains("line 2") && run.talk.contains("only a put has labels"))
      #expect(try sequence() == 0)
      let empty = #"{"op":"\#(operation)","key":"k1","labels":[]}"#
      #expect(bench.run("import", "other", input: lines(1...1) + empty).status == 0)
    }
  }

  @Test("batches of 1000 lines are committed, and each is told with jsonl")
  func committed() throws {
    let run = bench.run("import", "S", "--output", "jsonl", input: lines(1...2345))
    #expect(
      run.lines == [#"{"committed":1000}"#, #"{"committed":2000}"#, #"{"committed":2345}"#])
    #expect(try sequence() == 2345)
  }

  @Test("a broken line stops the import with its number, and nothing of its batch stays")
  func brokenLine() throws {
    let text = lines(1...1500) + "{\"key\":\"broken\n" + lines(1501...3000)
    let run = bench.run("import", "S", input: text)
    #expect(run.status == 1)
    #expect(run.talk.contains("standard input, line 1501"))
    #expect(run.talk.contains("1,000 entries are committed"))
    #expect(run.talk.split(separator: "\n").count == 1)
    #expect(try sequence() == 1000)
    #expect(bench.run("verify", "S").status == 0)
  }

  @Test("with --skip-bad everything else is taken, and the bad lines are told")
  func skipBad() throws {
    let text =
      lines(1...10) + "no json\n" + lines(11...20) + "{\"key\":\"\",\"value\":\"x\"}\n"
      + "{\"op\":\"touch\",\"key\":\"absent\"}\n"
    let run = bench.run("import", "S", "--skip-bad", "--output", "json", input: text)
    #expect(run.status == 0)
    #expect(run.talk.contains("line 11") && run.talk.contains("line 22"))
    #expect(run.talk.contains("line 23"))
    #expect(try sequence() == 20)
    #expect(try run.names() == ["committed", "keys", "read", "sequence", "skipped"])
    #expect(try run.object()["skipped"] as? Int == 3)
  }

  @Test("a touch of a key that is absent, or deleted a line before, is a bad line")
  func touchOfAbsent() throws {
    for text in [
      #"{"op":"touch","key":"a"}"#,
      #"{"key":"a","value":"1"}"# + "\n" + #"{"op":"delete","key":"a"}"# + "\n"
        + #"{"op":"touch","key":"a"}"#,
    ] {
      let run = bench.run("import", "S", input: text)
      #expect(run.status == 1)
      #expect(run.talk.contains("touch of a key that is not there"))
      #expect(try sequence() == 0)
    }
  }

  @Test("a key out of bounds is a bad line: exit 1, not 64")
  func keyBounds() {
    let long = String(repeating: "x", count: 65_536)
    for key in ["", long] {
      let run = bench.run("import", "S", input: #"{"key":"\#(key)","value":"x"}"#)
      #expect(run.status == 1)
      #expect(run.talk.contains("line 1"))
    }
    let longest = String(repeating: "x", count: 65_535)
    #expect(bench.run("import", "S", input: #"{"key":"\#(longest)","value":"x"}"#).status == 0)
  }

  @Test("unknown fields are passed over with one warning")
  func unknownFields() {
    let text = (1...3000).map { "{\"key\":\"k\($0)\",\"value\":\"v\",\"colour\":\"x\"}\n" }.joined()
    let run = bench.run("import", "S", input: text)
    #expect(run.status == 0)
    #expect(run.talk.split(separator: "\n").filter { $0.contains("colour") }.count == 1)
  }

  @Test("an interrupt finishes the batch, closes the store and exits 130")
  func interrupt() throws {
    let polls = Counter()
    let run = bench.run(
      "import", "S", "--output", "jsonl", input: lines(1...50_000),
      interrupted: { polls.next() > 40 })
    #expect(run.status == 130)
    #expect(run.talk.contains("interrupted"))
    let committed = try run.objects().last?["committed"] as? Int ?? 0
    #expect(committed < 50_000)
    #expect(committed % 1000 == 0)
    #expect(try sequence() == committed)
    #expect(
      try bench.run("stat", "S", "--output", "json").object()["closed_cleanly"] as? Bool == true)
  }

  @Test("a file compressed with zstd is known by its first bytes")
  func zstd() throws {
    let text = Array(lines(1...5000).utf8)
    var compressed: [UInt8] = []
    try ZstdCompressor(level: 3).compress(text.rawSpan, appendingTo: &compressed)
    #expect(bench.run(["import", "S"], input: compressed).status == 0)
    #expect(try sequence() == 5000)
    let cut = bench.run(["import", "T"], input: Array(compressed.dropLast(9)))
    #expect(cut.status == 65)
    #expect(cut.talk.contains("zstd"))
  }

  @Test("a dry run reads everything and creates nothing")
  func dryRun() {
    let run = bench.run("import", "S", "--dry-run", input: lines(1...5))
    #expect(run.status == 0)
    #expect(run.talk.contains("would import 5 entries"))
    #expect(bench.run("stat", "S").status == 66)
    #expect(bench.run("import", "S", "--dry-run", input: "{").status == 1)
  }

  @Test("a file that is missing creates no store")
  func missingFile() {
    let run = bench.run("import", "S", "/nowhere/at/all.ndjson")
    #expect(run.status == 1)
    #expect(run.talk.contains("/nowhere/at/all.ndjson"))
    #expect(bench.run("stat", "S").status == 66)
  }

  @Test("an empty input makes an empty store")
  func empty() throws {
    #expect(bench.run("import", "S").status == 0)
    #expect(try sequence() == 0)
    #expect(bench.run("scan", "S").output.isEmpty)
    #expect(bench.run("verify", "S").status == 0)
  }
}
