import Foundation
import Testing
import TidemarkEngine

@Suite("Output in every form")
struct OutputTests {
  private let bench = Bench.withNotes()

  /// Every command, as it succeeds on the store at `path`.
  private func commands(_ path: String) -> [[String]] {
    [
      ["scan", path], ["scan", path, "--keys"], ["labels", path], ["at", path, "0"],
      ["diff", path, "0", "0"], ["tail", path], ["import", path], ["import", path, "--dry-run"],
      ["replay", path, "--to", path + "-replayed"],
      ["replay", path, "--to", path + "-replayed", "--dry-run"],
      ["pull", path + "-pulled", "--from", path + "-replayed"], ["pending", path],
      ["pending", path, "--list"], ["pending", path, "--label", "x"], ["parked", path],
      ["peers", path], ["diff", path + "-pulled", path + "-replayed"],
      ["delete", path, "absent", "--dry-run"], ["delete", path, "--prefix", "no", "--dry-run"],
      ["undo", path, "--since", "0", "--dry-run"], ["create", path + "-new"],
      ["stat", path], ["verify", path],
      ["doctor", path], ["snapshot", path], ["compact", path, "--dry-run"], ["compact", path],
      ["rebuild", path], ["repair", path, "--into", path + "-repaired"],
      ["backup", path, path + "-copy"],
    ]
  }

  /// Commands that need a key.
  private let keyCommands = [
    ["get", "S", "note/1"], ["history", "S", "note/1"], ["explain", "S", "note/1"],
    ["at", "S", "1", "note/1"], ["put", "S", "k", "v"], ["delete", "S", "k"],
    ["undo", "S", "--since", "6"],
  ]

  @Test(
    "every command tells at least one JSON object with json and jsonl, of an empty store too",
    arguments: ["json", "jsonl"])
  func objects(format: String) throws {
    bench.run("import", "E")
    for command in commands("E") + commands("S") + keyCommands {
      let run = bench.run(command + ["--output", format])
      #expect(run.status == 0, "\(command): \(run.talk)")
      let objects = try format == "json" ? [run.object()] : run.objects()
      #expect(!objects.isEmpty, "\(command)")
      #expect(objects.allSatisfy { !$0.isEmpty }, "\(command): \(run.output)")
    }
    let gone = bench.run("diff", "S", "0", "1", "--output", format)
    #expect(gone.status == 2)
    #expect(try !(format == "json" ? [gone.object()] : gone.objects()).isEmpty)
  }

  @Test("verify and doctor end with their summary as jsonl, whether something is wrong or not")
  func summary() throws {
    for command in ["verify", "doctor"] {
      let healthy = try bench.run(command, "S", "--output", "jsonl").objects()
      #expect(healthy.count == 1)
      #expect(healthy.last?["healthy"] as? Bool == true)
      #expect(healthy.last?["entries"] as? Int == 6)
    }
    let status = try bench.run("stat", "S", "--output", "json").object()
    let segments = try #require(status["segments"] as? [[String: Any]])
    let name = try #require(segments[0]["file"] as? String)
    let file = try bench.disk.open("S/" + name, .readWrite)
    try file.writeFully([0xff, 0xff].rawSpan, at: 8192 + 100)
    file.close()
    for (command, isRecorded) in [("doctor", false), ("verify", true), ("doctor", true)] {
      let damaged = bench.run(command, "S", "--output", "jsonl")
      #expect(damaged.status == 2)
      let objects = try damaged.objects()
      #expect(objects.count > 1)
      #expect(objects.last?["healthy"] as? Bool == false)
      #expect(objects.last?["recorded"] as? Bool == isRecorded)
      #expect(objects.dropLast().allSatisfy { $0["message"] is String })
    }
  }

  /// DEL, a C1 control character, and some that turn the direction of text.
  private static let tricks = "a\u{7f}b\u{9b}31mc\u{202e}d\u{2066}e\u{2069}é日"
  private static let escaped = #"a\u007fb\u009b31mc\u202ed\u2066e\u2069é日"#

  @Test("JSON on a terminal has characters that could mislead as escapes, in a pipe as they are")
  func terminal() throws {
    let tricks = Self.tricks
    bench.run("put", "S", "k" + tricks, "v" + tricks, "--label", "l" + tricks)
    var terminal = bench
    terminal.isTerminal = true
    terminal.environment = ["NO_COLOR": "1"]
    for command in [
      ["scan", "S", "--values"], ["get", "S", "k" + tricks], ["history", "S", "k" + tricks],
      ["export", "S"], ["export", "S", "--history"], ["labels", "S"], ["tail", "S"],
      ["explain", "S", "k" + tricks], ["diff", "S", "0", "7"],
    ] {
      for format in ["json", "jsonl"] {
        let arguments = command + ["--output", format]
        let shown = terminal.run(arguments)
        #expect(shown.output.contains(Self.escaped), "\(arguments)")
        let isSafe = shown.output.unicodeScalars.allSatisfy {
          !(0x7f..<0xa0).contains($0.value) && !(0x2028...0x202e).contains($0.value)
            && !(0x2066...0x2069).contains($0.value)
        }
        #expect(isSafe, "\(arguments)")
        let piped = bench.run(arguments)
        #expect(piped.output.contains(tricks), "\(arguments)")
        // Both mean the same.
        if format == "jsonl" || command[0] == "export" {
          #expect(try NSArray(array: shown.objects()) == NSArray(array: piped.objects()))
        } else {
          #expect(try NSDictionary(dictionary: shown.object()) == piped.object() as NSDictionary)
        }
      }
    }
    // An error repeats a path that may hold anything.
    #expect(terminal.run("stat", "M\u{9b}31m").talk.contains("M\\xc2\\x9b31m"))
  }
}
