import Foundation
import Testing
import TidemarkEngine
import TidemarkTestKit

@Suite("Places where no store can be")
struct PathTests {
  @Test("an empty path is bad usage, for every command")
  func empty() throws {
    let bench = Bench.withNotes()
    for arguments in [
      ["import", ""], ["stat", ""], ["put", "", "k", "v"], ["verify", ""],
      ["repair", "", "--into", "T"], ["repair", "S", "--into", ""], ["backup", "S", ""],
      ["replay", "S", "--to", ""], ["pull", "", "--from", "S"], ["diff", "S", ""],
    ] {
      let run = bench.run(arguments)
      #expect(run.status == 64, "\(arguments): \(run.talk)")
      #expect(run.talk.contains("path is empty"), "\(run.talk)")
    }
  }

  @Test(
    "a URL that is not of HTTP is bad usage, and no path",
    arguments: [
      "ftp://a/b", "ws://host:80/notes", "file:///tmp/notes", "S3://bucket/notes", "git+ssh://a/b",
    ])
  func schemes(url: String) throws {
    let bench = Bench.withNotes()
    let before = try bench.files(in: "S")
    for arguments in [
      ["replay", "S", "--to", url], ["pull", "S", "--from", url], ["diff", "S", url],
      ["verify", "S", "--remote", url],
    ] {
      let run = bench.run(arguments)
      #expect(run.status == 64, "\(arguments): \(run.talk)")
      #expect(run.talk.contains(url) && run.talk.contains("https://"), "\(run.talk)")
    }
    #expect(try bench.files(in: "S") == before)
    // A path says that a directory is meant.
    let run = bench.run(["replay", "S", "--to", "./\(url)"])
    #expect(!run.talk.contains("https://"), "\(run.talk)")
  }

  @Test("a link that leads nowhere, and a place in a directory that is not there, are 66")
  func links() throws {
    let tool = try ToolProcess()
    try FileManager.default.createSymbolicLink(
      atPath: tool.path("link"), withDestinationPath: "nowhere")
    let bench = Bench(disk: LocalFileSystem())
    bench.run("import", tool.path("S"), input: Bench.notes)
    for place in ["link", "absent/S"] {
      for arguments in [
        ["import", tool.path(place)], ["repair", tool.path("S"), "--into", tool.path(place)],
        ["backup", tool.path("S"), tool.path(place)],
        ["replay", tool.path("S"), "--to", tool.path(place)],
      ] {
        let run = bench.run(arguments)
        #expect(run.status == 66, "\(arguments): \(run.talk)")
        let words = place == "link" ? "is a symbolic link that leads nowhere" : "no directory"
        #expect(run.talk.contains(words), "\(run.talk)")
        #expect(!run.talk.contains("disk"), "\(run.talk)")
      }
    }
    #expect(!FileManager.default.fileExists(atPath: tool.path("nowhere")))
    // A link to a directory is as good as the directory.
    try FileManager.default.createDirectory(
      atPath: tool.path("nowhere"), withIntermediateDirectories: false)
    #expect(bench.run("import", tool.path("link")).status == 0)
  }

  @Test("a disk that gives no permission is 77 and says for what, and nothing is changed")
  func noPermission() throws {
    let disk = SimulatedFileSystem(seed: 3)
    let bench = Bench(disk: disk)
    bench.run("import", "S", input: Bench.notes)
    let before = try bench.files(in: "S")
    for arguments in [
      ["stat", "S"], ["get", "S", "note/1"], ["scan", "S"], ["export", "S"], ["verify", "S"],
      ["doctor", "S"], ["put", "S", "k", "v"], ["import", "S"], ["compact", "S"],
      ["snapshot", "S"], ["rebuild", "S"], ["repair", "S", "--into", "T"], ["backup", "S", "T"],
      ["replay", "S", "--to", "T"],
    ] {
      // Once nothing of it can be listed, once no file be opened.
      for operation in [FileSystemError.Operation.list, .open] {
        disk.plan = [
          FaultRule(
            .error(.EACCES), .call(1), calls: .only([operation, .lock]), path: "S", times: .max)
        ]
        let run = bench.run(arguments)
        disk.plan = .none
        #expect(run.status == 77, "\(arguments) \(operation): \(run.talk)")
        #expect(run.talk.contains("no permission for S"), "\(arguments): \(run.talk)")
        #expect(run.talk.filter(\.isNewline).count == 1, "\(arguments): \(run.talk)")
        #expect(try bench.files(in: "S") == before, "\(arguments)")
        #expect(try bench.disk.kind("T") == nil, "\(arguments)")
      }
    }
    #expect(bench.run("verify", "S").status == 0)
  }
}
