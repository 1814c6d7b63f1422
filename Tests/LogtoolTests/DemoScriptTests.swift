import Foundation
import Testing

/// `Tools/demo` with the tool that was built with the tests.
@Suite("The demo")
struct DemoScriptTests {
  private static let demo = URL(filePath: #filePath).deletingLastPathComponent()
    .deletingLastPathComponent().deletingLastPathComponent().appending(path: "Tools/demo")

  /// Runs the demo with a compiler that has built everything already.
  /// - Parameter products: where `logtool` is.
  private func run(_ tool: ToolProcess, products: String) throws -> ToolProcess.Ended {
    try tool.write(
      "#!/bin/sh\ncase \"$*\" in *--show-bin-path*) echo '\(products)' ;; esac\n", to: "swift")
    try makeExecutable(tool.path("swift"))
    let path = ProcessInfo.processInfo.environment["PATH"] ?? "/usr/bin:/bin"
    return try tool.run(
      [Self.demo.path], program: URL(filePath: "/bin/bash"),
      environment: [
        "PATH": "\(tool.directory.path):\(path)", "TMPDIR": tool.directory.path,
      ])
  }

  private func makeExecutable(_ path: String) throws {
    try FileManager.default.setAttributes([.posixPermissions: 0o755], ofItemAtPath: path)
  }

  @Test("every claim of the demo holds")
  func claims() throws {
    let ended = try run(
      try ToolProcess(), products: ToolProcess.tool.deletingLastPathComponent().path)
    #expect(ended.status == 0, "\(ended.talk)")
    #expect(ended.lines.contains("== Done"))
  }

  @Test("a claim that does not hold ends the demo with 1, and is named")
  func falseClaim() throws {
    let tool = try ToolProcess()
    let products = tool.path("products")
    try FileManager.default.createDirectory(
      atPath: products, withIntermediateDirectories: false)
    // A tool that counts one entry too few.
    let script = "'\(ToolProcess.tool.path)' \"$@\" | sed 's/:2000,/:1999,/'"
    try tool.write("#!/bin/sh\n\(script)\n", to: "products/logtool")
    try makeExecutable(products + "/logtool")
    let ended = try run(tool, products: products)
    #expect(ended.status == 1)
    #expect(ended.talk.contains("this does not hold: every line is an entry"), "\(ended.talk)")
    #expect(!ended.lines.contains("== Done"))
  }
}
