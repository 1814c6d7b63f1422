import Foundation
import LogtoolKit
import Testing

@Suite("Arguments that are no text")
struct ArgumentTests {
  private let bench = Bench.withNotes()

  private func refusal(_ arguments: [UInt8]...) -> ToolRun {
    let (output, talk) = (MemorySink(), MemorySink())
    let console = Console(output: output, errors: talk)
    let status = LogtoolMain.run(arguments, console: console)
    return ToolRun(status: status, bytes: output.bytes, talk: talk.text)
  }

  private func bytes(_ text: String) -> [UInt8] { Array(text.utf8) }

  @Test("a key that is not UTF-8 is refused and not changed, and the talk says what to do")
  func keys() {
    for command in ["get", "put", "delete", "history", "explain"] {
      let run = refusal(bytes(command), bytes("S"), [0x6b, 0xff])
      #expect(run.status == 64, "\(command)")
      #expect(run.talk.contains("argument 3 is not UTF-8"), "\(run.talk)")
      #expect(run.talk.contains("--key-base64"))
      #expect(run.talk.filter(\.isNewline).count == 1)
    }
    #expect(refusal(bytes("scan"), bytes("S"), bytes("--prefix=") + [0xc3]).status == 64)
    let bound = refusal(bytes("scan"), bytes("S"), bytes("--to"), [0xc3])
    #expect(bound.talk.contains("argument 4") && bound.talk.contains("--key-base64"))
  }

  @Test("a path that is not UTF-8 is called one, and shown")
  func paths() {
    for run in [
      refusal(bytes("stat"), bytes("S") + [0xff]),
      refusal(bytes("import"), bytes("S"), bytes("S") + [0xff]),
      refusal(bytes("backup"), bytes("S"), bytes("S") + [0xff]),
      refusal(bytes("replay"), bytes("S"), bytes("--to"), bytes("S") + [0xff]),
      refusal(bytes("repair"), bytes("S"), bytes("--into=S") + [0xff]),
      refusal(bytes("put"), bytes("S"), bytes("k"), bytes("--value-file"), bytes("S") + [0xff]),
    ] {
      #expect(run.status == 64)
      #expect(run.talk.contains("the path S\\xff is not UTF-8"), "\(run.talk)")
    }
  }

  @Test("the process looks at the bytes that it was given")
  func process() throws {
    let tool = try ToolProcess()
    try tool.write("{\"key\":\"k\u{fffd}\",\"value\":\"other\"}\n", to: "in.ndjson")
    #expect(try tool.run(["import", "S", "in.ndjson"]).status == 0)
    #expect(try tool.run(["get", "S", "k\u{fffd}"]).lines == ["other"])
    let script = "exec '\(ToolProcess.tool.path)' get S \"$(printf 'k\\377')\""
    let ended = try tool.run(["-c", script], program: URL(filePath: "/bin/sh"))
    #expect(ended.status == 64)
    #expect(ended.lines == [])
    #expect(ended.talk.contains("--key-base64"), "\(ended.talk)")
  }
}
