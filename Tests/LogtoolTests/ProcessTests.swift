import Foundation
import Testing
import TidemarkTestKit

/// One after the other: each keeps a processor busy.
@Suite("The tool as a process", .serialized)
struct ProcessTests {
  private static let lines = 30_000
  private static let text = (1...lines).map {
    "{\"key\":\"key/\($0)\",\"value\":\"value of \($0)\",\"labels\":[\"l\($0 % 5)\"]}\n"
  }.joined()

  private func sequence(_ tool: ToolProcess, _ store: String) throws -> Int {
    try tool.json("stat", store)["sequence"] as? Int ?? -1
  }

  @Test(
    "an import killed at any moment keeps whole batches, and all that it reported",
    arguments: 0..<5)
  func killedImport(round: Int) throws {
    let seed = UInt64.random(in: 0...(.max))
    let random = SeededRandom(seed: seed)
    var tool = try ToolProcess()
    var ended: ToolProcess.Ended
    var attempts = 0
    // On a busy machine the import may have ended before the signal comes.
    repeat {
      tool = try ToolProcess()
      try tool.write(Self.text, to: "in.ndjson")
      ended = try tool.run(
        ["import", "S", "in.ndjson", "--output", "jsonl"], signal: SIGKILL,
        afterLines: random.int(below: 20), microseconds: UInt32(random.int(below: 30_000)))
      attempts += 1
    } while !ended.wasKilled && attempts < 20
    let comment: Comment = "seed \(seed)"
    #expect(ended.wasKilled, comment)
    let reported = ended.lines.last.flatMap { Int($0.filter(\.isNumber)) } ?? 0
    guard FileManager.default.fileExists(atPath: tool.path("S/MANIFEST.0")) else {
      #expect(reported == 0, comment)
      return
    }
    let kept = try sequence(tool, "S")
    #expect(kept >= reported && kept % 1000 == 0 && kept <= Self.lines, comment)
    #expect(try tool.run(["verify", "S"]).status == 0, comment)
    // The first writing opening recovers; the rest of the lines then joins.
    let rest = Self.text.split(separator: "\n").dropFirst(kept).joined(separator: "\n")
    try tool.write(rest, to: "rest.ndjson")
    #expect(try tool.run(["import", "S", "rest.ndjson"]).status == 0, comment)
    #expect(try tool.run(["verify", "S"]).status == 0, comment)
    let exported = try tool.run(["export", "S", "--history"]).lines
    #expect(exported.count == Self.lines, comment)
    let isInOrder = exported.enumerated().allSatisfy { index, line in
      line.contains("\"seq\":\(index + 1),")
        && line.contains("\"key\":\"key/\(index + 1)\",\"value\":\"value of \(index + 1)\"")
    }
    #expect(isInOrder, comment)
  }

  @Test(
    "a replay killed at any moment goes on where it was, and sends nothing twice",
    arguments: 0..<3)
  func killedReplay(round: Int) throws {
    let seed = UInt64.random(in: 0...(.max))
    let random = SeededRandom(seed: seed)
    let comment: Comment = "seed \(seed)"
    let tool = try ToolProcess()
    try tool.write(Self.text, to: "in.ndjson")
    #expect(try tool.run(["import", "S", "in.ndjson"]).status == 0)
    for _ in 0..<3 {
      _ = try tool.run(
        ["replay", "S", "--to", "T"], signal: SIGKILL,
        microseconds: UInt32(50_000 + random.int(below: 1_000_000)))
    }
    #expect(try tool.run(["replay", "S", "--to", "T"]).status == 0, comment)
    #expect(try tool.json("replay", "S", "--to", "T")["sent"] as? Int == 0, comment)
    #expect(try tool.run(["diff", "S", "T"]).status == 0, comment)
    // Each operation once: the history has nothing but the lines.
    #expect(try tool.run(["export", "T", "--history"]).lines.count == Self.lines, comment)
  }

  @Test("Ctrl-C ends an import after its batch with 130 and a clean close")
  func interruptedImport() throws {
    let tool = try ToolProcess()
    try tool.write(Self.text, to: "in.ndjson")
    try tool.pour("in.ndjson", into: "pipe")
    let ended = try tool.run(
      ["import", "S", "pipe", "--output", "jsonl"], signal: SIGINT, afterLines: 1)
    #expect(ended.status == 130 && !ended.wasKilled)
    let status = try tool.json("stat", "S")
    #expect(status["closed_cleanly"] as? Bool == true)
    let committed = try #require(ended.lines.last.flatMap { Int($0.filter(\.isNumber)) })
    #expect(status["sequence"] as? Int == committed)
    #expect(committed > 0 && committed % 1000 == 0)
  }

  @Test("Ctrl-C ends tail --follow with 130")
  func interruptedTail() throws {
    let tool = try ToolProcess()
    try tool.write(#"{"key":"a","value":"1"}"#, to: "in.ndjson")
    #expect(try tool.run(["import", "S", "in.ndjson"]).status == 0)
    let ended = try tool.run(["tail", "S", "--follow"], signal: SIGINT, afterLines: 1)
    #expect(ended.status == 130 && !ended.wasKilled)
    #expect(ended.lines.count == 1)
  }

  @Test("a pipe that its reader closes ends a command quietly")
  func closedPipe() throws {
    let tool = try ToolProcess()
    try tool.write(Self.text, to: "in.ndjson")
    #expect(try tool.run(["import", "S", "in.ndjson"]).status == 0)
    let process = Process()
    process.executableURL = URL(filePath: "/bin/sh")
    process.currentDirectoryURL = tool.directory
    process.arguments = [
      "-c",
      "{ \"$0\" export S 2>talk; echo $? >status; } | head -n 1 >first", ToolProcess.tool.path,
    ]
    try process.run()
    process.waitUntilExit()
    func text(_ name: String) throws -> String {
      try String(contentsOfFile: tool.path(name), encoding: .utf8)
    }
    #expect(try text("status") == "0\n")
    #expect(try text("talk") == "")
    #expect(try text("first").contains("key/1"))
  }

  @Test("output that finds no space is 74", .enabled(if: Self.isLinux))
  func fullOutput() throws {
    let tool = try ToolProcess()
    try tool.write(Self.text, to: "in.ndjson")
    #expect(try tool.run(["import", "S", "in.ndjson"]).status == 0)
    let process = Process()
    process.executableURL = URL(filePath: "/bin/sh")
    process.currentDirectoryURL = tool.directory
    process.arguments = ["-c", "\"$0\" export S >/dev/full 2>/dev/null", ToolProcess.tool.path]
    try process.run()
    process.waitUntilExit()
    #expect(process.terminationStatus == 74)
  }

  private static var isLinux: Bool {
    #if !canImport(Darwin)
      true
    #else
      false
    #endif
  }
}
