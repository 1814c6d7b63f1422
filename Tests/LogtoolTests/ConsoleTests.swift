import LogtoolKit
import Testing

@Suite("The tool's output and messages")
struct ConsoleTests {
  private let bench = Bench.withNotes()

  @Test("the version names the tool, the format, zstd and Swift")
  func version() {
    let run = bench.run("--version")
    #expect(run.status == 0)
    #expect(
      run.output.contains(
        /^logtool \d+\.\d+\.\d+ \(format \d+\.\d+, zstd \d+\.\d+\.\d+, Swift .+\)\n$/))
  }

  @Test("help goes to the standard output and has examples first")
  func help() {
    let root = bench.run("--help")
    #expect(root.status == 0 && root.talk.isEmpty)
    #expect(bench.run().status == 0)
    for command in [
      "import", "export", "put", "get", "delete", "scan", "labels", "history", "at", "diff",
      "tail", "stat", "verify", "doctor", "snapshot", "compact", "replay", "rebuild", "repair",
      "backup", "explain", "pull", "pending", "parked", "peers", "create", "undo",
    ] {
      #expect(root.output.contains("\n  \(command) "), "\(command)")
      let help = bench.run("help", command).output
      #expect(help.contains("Example"), "\(command)")
      #expect(help.contains("logtool \(command) S"), "\(command)")
      #expect(bench.run(command, "--help").output == help)
    }
  }

  @Test("colour comes on a terminal only, unless the user or the environment says otherwise")
  func colour() {
    func isColoured(
      _ arguments: String..., terminal: Bool = true, environment: [String: String] = [:]
    ) -> Bool {
      var bench = bench
      bench.isTerminal = terminal
      bench.environment = environment
      return bench.run(["stat", "S"] + arguments).output.contains("\u{1b}[")
    }
    #expect(isColoured())
    #expect(!isColoured(terminal: false))
    #expect(!isColoured(environment: ["NO_COLOR": "1"]))
    #expect(!isColoured(environment: ["TERM": "dumb"]))
    #expect(isColoured(terminal: false, environment: ["CLICOLOR_FORCE": "1"]))
    #expect(!isColoured(terminal: false, environment: ["CLICOLOR_FORCE": "0"]))
    #expect(!isColoured("--color", "never"))
    #expect(isColoured("--color", "always", terminal: false))
    #expect(isColoured("--color", "always", environment: ["NO_COLOR": "1"]))
    #expect(!isColoured("--output", "json"))
  }

  @Test("progress is drawn on a terminal only, and can be turned off")
  func progress() {
    let text = (1...3000).map { "{\"key\":\"k\($0)\",\"value\":\"v\"}\n" }.joined()
    func isDrawn(
      _ arguments: String..., terminal: Bool = true, environment: [String: String] = [:]
    ) -> Bool {
      var bench = bench
      bench.isTerminal = terminal
      bench.environment = environment
      return bench.run(["import", "P"] + arguments, input: Array(text.utf8)).talk.contains("\r")
    }
    #expect(isDrawn())
    #expect(!isDrawn(terminal: false))
    #expect(!isDrawn("--no-progress"))
    #expect(!isDrawn("--quiet"))
    #expect(!isDrawn(environment: ["TERM": "dumb"]))
  }

  @Test("a list of nothing says so on a terminal, and nothing in a pipe")
  func emptyLists() {
    var terminal = bench
    terminal.isTerminal = true
    for (arguments, words) in [
      (["peers", "S"], "no peers"), (["parked", "S"], "nothing is parked"),
      (["pending", "S", "--list", "--label", "none"], "nothing is pending"),
      (["labels", "S", "--prefix", "none"], "no label is in use"),
      (["scan", "S", "--prefix", "none"], "no keys"),
      (["tail", "S", "--since", "6"], "no entries"),
      (["delete", "S", "none", "--dry-run"], "none of the keys is there"),
      (["undo", "S", "--since", "6", "--dry-run"], "nothing to undo"),
    ] {
      let shown = terminal.run(arguments)
      #expect(shown.status == 0 && shown.output.isEmpty)
      #expect(shown.talk == words + "\n", "\(arguments): \(shown.talk)")
      #expect(terminal.run(arguments + ["--quiet"]).talk.isEmpty)
      let piped = bench.run(arguments)
      #expect(piped.output.isEmpty && piped.talk.isEmpty, "\(arguments): \(piped.talk)")
    }
    #expect(terminal.run("verify", "S").talk.contains("nothing wrong"))
    #expect(!terminal.run("diff", "S", "1", "1").talk.contains("no differences"))
  }

  @Test("quiet leaves errors and data")
  func quiet() {
    #expect(bench.run("import", "Q", "--quiet", input: Bench.notes).talk.isEmpty)
    #expect(bench.run("diff", "S", "1", "2", "--quiet").talk.isEmpty)
    #expect(bench.run("diff", "S", "1", "2", "--quiet").output == "+\tnote/2\n")
    #expect(!bench.run("get", "S", "absent", "--quiet").talk.isEmpty)
  }
}
