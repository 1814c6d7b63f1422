import Foundation
import Testing

/// `Tools/server` with a compiler in its place that only writes down what it is told.
@Suite("Starting the server")
struct ServerScriptTests {
  private static let tools = URL(filePath: #filePath).deletingLastPathComponent()
    .deletingLastPathComponent().deletingLastPathComponent().appending(path: "Tools")

  /// Runs the script.
  /// - Parameters:
  ///   - variables: of the environment, which is empty else.
  ///   - options: of the script.
  ///   - compiler: what the compiler does in the end.
  private func run(
    _ variables: [String], _ options: [String], compiler: String = ""
  ) throws -> (built: [String], ended: ToolProcess.Ended) {
    let tool = try ToolProcess()
    let manager = FileManager.default
    for folder in ["Tools", "programs"] {
      try manager.createDirectory(
        atPath: tool.path(folder), withIntermediateDirectories: true)
    }
    for script in ["server", "build"] {
      try manager.copyItem(
        at: Self.tools.appending(path: script),
        to: tool.directory.appending(path: "Tools/\(script)"))
    }
    let programs = [
      "Tools/prepare": "exit 0",
      "programs/swift": """
      echo "swift $*" >>"$0.log"
      folder="$(dirname "$0")/../Tools/SyncServer/.build/release"
      mkdir -p "$folder"
      printf '#!/bin/sh\\necho "server $*"\\n' >"$folder/tidemark-server"
      chmod +x "$folder/tidemark-server"
      \(compiler)
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
    let built = try String(contentsOfFile: tool.path("programs/swift.log"), encoding: .utf8)
    return (built.split(separator: "\n").map(String.init), ended)
  }

  @Test(
    "it is built and started with the options that it was given, whatever is in the environment")
  func starts() throws {
    let (built, ended) = try run([], ["--port", "8080", "--data", "my databases"])
    #expect(ended.status == 0, "\(ended.talk)")
    #expect(built.count == 1)
    #expect(built.first?.contains("--product tidemark-server") == true)
    #expect(built.first?.hasSuffix("--disable-default-traits") == true)
    #expect(ended.lines == ["server --port 8080 --data my databases"])
  }

  @Test("tokens and HTTPS are built when an option or the environment asks for them")
  func traits() throws {
    let byOption = try run([], ["--port", "1", "--tls-certificate", "c"]).built
    #expect(byOption.first?.hasSuffix("--traits TLS") == true)
    let byVariable = try run(["TIDEMARK_JWT_SECRET_FILE=s", "OTHER=1"], ["--port", "1"]).built
    #expect(byVariable.first?.hasSuffix("--traits JWT") == true)
  }

  @Test("the script says that it builds, and how far the compiler is")
  func progress() throws {
    let ended = try run(
      ["BUILD_NEWS_SECONDS=0"], ["--port", "1"],
      compiler: """
        echo '[1/3] Compiling Tidemark'
        for second in $(seq 300); do
          grep -q Compiling "$(dirname "$0")/../talk" && break
          sleep 1
        done
        """
    ).ended
    #expect(ended.status == 0)
    #expect(ended.talk.hasPrefix("Building the sync server"), "\(ended.talk)")
    #expect(ended.talk.contains("[1/3] Compiling Tidemark"), "\(ended.talk)")
  }

  @Test("a build that fails is shown whole, and no server is started")
  func failure() throws {
    let ended = try run(
      [], ["--port", "1"], compiler: "echo 'error: one'; echo 'error: two' >&2; echo; exit 3"
    ).ended
    #expect(ended.status == 3)
    #expect(ended.talk.contains("error: one\nerror: two\n"), "\(ended.talk)")
    #expect(ended.lines.isEmpty)
  }
}
