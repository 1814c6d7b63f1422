import Testing

@testable import LogtoolKit

@Suite("Help")
struct HelpTests {
  private func help(_ arguments: String..., columns: Int) -> [Substring] {
    var bench = Bench()
    bench.environment = ["COLUMNS": "\(columns)"]
    return bench.run(arguments).output.split(separator: "\n", omittingEmptySubsequences: false)
  }

  @Test("help is wrapped once: a line ends where the next word has no room", arguments: [80, 40])
  func wrapping(columns: Int) {
    for command in CommandNames.visible + ["help", "man"] {
      let lines = help("help", command, columns: columns)
      let text = lines.prefix { !$0.hasPrefix("USAGE") }
      for (line, next) in zip(text, text.dropFirst()) where !line.isEmpty && !next.hasPrefix(" ") {
        guard let word = next.split(separator: " ").first else { continue }
        #expect(line.count + 1 + word.count >= columns, "\(command): \(line)")
      }
      // In narrower ones there are words without room.
      if columns == 80 { #expect(lines.allSatisfy { $0.count <= 80 }, "\(command)") }
    }
    #expect(help("--help", columns: 80).allSatisfy { $0.count <= 80 })
  }

  @Test("examples stand on a line of their own at 80 columns")
  func examples() {
    for command in CommandNames.visible {
      let lines = help("help", command, columns: 80)
      let examples = lines.drop { !$0.hasPrefix("Example") }.dropFirst().prefix { !$0.isEmpty }
      #expect(!examples.isEmpty && examples.allSatisfy { $0.hasPrefix("  ") }, "\(command)")
    }
  }

  @Test("the usage is broken between arguments, also where a terminal is too narrow for any")
  func usage() {
    let lines = help("help", "import", columns: 60)
    let usage = lines.drop { !$0.hasPrefix("USAGE") }.prefix { !$0.isEmpty }
    #expect(
      usage.count > 1
        && usage.dropFirst().allSatisfy { $0.hasPrefix("       [") || $0.hasPrefix("       <") })
    for columns in [-1, 0, 1, 25] { #expect(!help("help", "import", columns: columns).isEmpty) }
  }

  @Test("an unknown command is 64, and the nearest ones are named")
  func nearest() {
    let bench = Bench()
    for (word, hint) in [
      ("scna", "did you mean scan?"), ("verfy", "did you mean verify?"),
      ("pe", "did you mean pending or peers?"), ("dlete", "did you mean delete?"),
    ] {
      for arguments in [[word, "S"], ["help", word]] {
        let run = bench.run(arguments)
        #expect(run.status == 64 && run.output.isEmpty)
        #expect(
          run.talk == "logtool: there is no command \(word); \(hint) See logtool --help\n")
      }
    }
    let far = bench.run("frobnicate")
    #expect(far.talk == "logtool: there is no command frobnicate; see logtool --help\n")
    #expect(bench.run("help").output == bench.run("--help").output)
  }

  @Test("bad usage of a command names that command's help")
  func pointer() {
    let bench = Bench()
    #expect(bench.run("get", "S").talk.hasSuffix("; see logtool get --help\n"))
    #expect(bench.run("--bogus").talk.hasSuffix("; see logtool --help\n"))
    #expect(
      bench.run("scan", "S", "--labl", "x").talk.hasSuffix("'--label'? See logtool scan --help\n"))
    let values = bench.run("stat", "S", "--output", "xml").talk
    #expect(values.hasSuffix("or 'jsonl'; see logtool stat --help\n"), "\(values)")
  }
}
