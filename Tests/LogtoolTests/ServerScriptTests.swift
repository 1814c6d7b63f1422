import Foundation
import Testing

/// `Tools/server` with a compiler in its place that only writes down what it is told.
@Suite("Starting the server")
struct ServerScriptTests {
  private static let tools = URL(filePath: #filePath).deletingLastPathComponent()
    .deletingLastPathComponent().deletingLastPathComponent().appending(path: "Tools")

  /// What was built with which options, and what the server was started with.
  private func run(_ variables: [String], _ options: [String]) throws -> [String] {
    let tool = try ToolProcess()
    let manager = FileManager.default
    for folder in ["Tools", "programs"] {
      try manager.createDirectory(
        atPath: tool.path(folder), withIntermediateDirectories: true)
    }
    try manager.copyItem(
      at: Self.tools.appending(path: "server"), to: tool.directory.appending(path: "Tools/server"))
    let programs = [
      "Tools/prepare": "exit 0",
      "programs/swift": """
      echo "swift $*" >>"$0.log"
      folder="$(dirname "$0")/../Tools/SyncServer/.build/release"
      mkdir -p "$folder"
      printf '#!/bin/sh\\necho "server $*"\\n' >"$folder/tidemark-server"
      chmod +x "$folder/tidemark-server"
      """,
    ]
    for (name, text) in programs {
      try tool.write("#!/bin/sh\n\(text)\n", to: name)
      try manager.setAttributes([.posixPermissions: 0o755], ofItemAtPath: tool.path(name))
    }
    let path = "PATH=\(tool.path("programs")):/usr/bin:/bin:/usr/local/bin:/opt/homebrew/bin"
    let ended = try tool.run(
      ["-i", path] + variables + ["bash", tool.path("Tools/server")] + options,
      program: URL(filePath: "/usr/bin/env"))
    #expect(ended.status == 0, "\(ended.talk)")
    let built = try String(contentsOfFile: tool.path("programs/swift.log"), encoding: .utf8)
    return built.split(separator: "\n").map(String.init) + ended.lines
  }

  @Test(
    "it is built and started with the options that it was given, whatever is in the environment")
  func starts() throws {
    let lines = try run([], ["--port", "8080", "--data", "my databases"])
    #expect(lines.count == 2)
    #expect(lines.first?.contains("--product tidemark-server") == true)
    #expect(lines.first?.hasSuffix("--disable-default-traits") == true)
    #expect(lines.last == "server --port 8080 --data my databases")
  }

  @Test("who asks for tokens or HTTPS, by options or in the environment, gets them built")
  func traits() throws {
    let byOption = try run([], ["--port", "1", "--tls-certificate", "c"])
    #expect(byOption.first?.hasSuffix("--traits TLS") == true)
    let byVariable = try run(["TIDEMARK_JWT_SECRET_FILE=s", "OTHER=1"], ["--port", "1"])
    #expect(byVariable.first?.hasSuffix("--traits JWT") == true)
  }
}
