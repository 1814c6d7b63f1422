import Foundation
import Testing

@testable import LogtoolKit

@Suite("Completions and the manual")
struct CompletionTests {
  /// The completions of a real bash for the last word of each line.
  private func complete(_ lines: [String]) throws -> [String] {
    let tool = try ToolProcess()
    let script = try tool.run(["completions", "bash"])
    #expect(script.status == 0)
    try tool.write(String(decoding: script.output, as: UTF8.self), to: "script")
    for name in ["notes.tidemark/log", "notes.old"] {
      try FileManager.default.createDirectory(
        atPath: tool.path(name), withIntermediateDirectories: true)
    }
    for name in ["notes.ndjson", "key.bin"] { try tool.write("", to: name) }
    let session = """
      source ./script
      complete_line() {
        COMP_WORDS=("$@") COMP_CWORD=$(($# - 1)) COMP_LINE="$*" COMP_POINT=${#COMP_LINE}
        COMPREPLY=()
        _logtool logtool "${@: -1}" "${@: -2:1}"
        printf '%s\\n' "${COMPREPLY[@]}" | sort | tr '\\n' ' '
        echo
      }

      """
    try tool.write(
      session + lines.map { "complete_line \($0)\n" }.joined(), to: "session")
    let ended = try tool.run(["--norc", "session"], program: URL(filePath: "/bin/bash"))
    #expect(ended.status == 0 && ended.talk.isEmpty, "\(ended.talk)")
    return ended.lines
  }

  @Test("bash completes commands, also behind help, and options and their values")
  func words() throws {
    let found = try complete([
      "logtool sca", "logtool com", "logtool help und", "logtool scan S --ord",
      "logtool scan S --order s", "logtool completions f",
    ])
    #expect(
      found == ["scan ", "compact completions ", "undo ", "--order ", "sequence ", "fish "])
  }

  @Test("bash completes stores to directories, and files to files")
  func paths() throws {
    let found = try complete([
      "logtool scan no", "logtool scan notes.tidemark/l", "logtool put S k --value-file key",
      "logtool stat S --key-file key", "logtool import S notes.n",
      "logtool replay S --to notes.", "logtool repair S --into notes.o",
    ])
    #expect(
      found == [
        "notes.old notes.tidemark ", "notes.tidemark/log ", "key.bin ", "key.bin ",
        "notes.ndjson ", "notes.old notes.tidemark ", "notes.old ",
      ])
  }

  @Test("completions are made for zsh and fish, with what commands and options do")
  func descriptions() {
    let bench = Bench()
    for shell in ["zsh", "fish"] {
      let run = bench.run("completions", shell)
      #expect(run.status == 0)
      for text in ["Take commits back", "drop-history", "Drop every superseded version."] {
        #expect(run.output.contains(text), "\(shell)")
      }
      let names = CommandNames.visible.joined(separator: " ")
      #expect(run.output.contains(names), "\(shell)")
    }
    #expect(bench.run("completions", "tcsh").status == 64)
  }

  @Test("the manual has every command and option of the help, and no request but those of man")
  func manual() throws {
    let page = Bench().run("man")
    #expect(page.status == 0)
    let requests: Set<Substring> = [
      ".TH", ".SH", ".SS", ".PP", ".TP", ".RS", ".RE", ".nf", ".fi",
    ]
    for line in page.lines where line.hasPrefix(".") || line.hasPrefix("'") {
      #expect(requests.contains(line.prefix { $0 != " " }), "\(line)")
    }
    for command in try HelpTree().commands {
      #expect(page.output.contains("\n.SS logtool \(command.name)\n"))
      for name in command.arguments.flatMap(\.names) {
        let written = name.replacingOccurrences(of: "-", with: "\\-")
        #expect(page.output.contains("\\fB\(written)\\fR"), "\(command.name) \(name)")
      }
    }
    #expect(!page.output.contains("\n.SS logtool man\n"))
    #expect(page.bytes.allSatisfy { $0 < 0x80 })
  }
}
