import Foundation
import Testing
import Tidemark

/// The short form of `Tools/realfaults`, and a disk that is really full. Both take what not every
/// machine allows; where that is so the tests are skipped, which the test run says.
@Suite("Faults of the real file system", .serialized)
struct RealFaultTests {
  private static let root = URL(filePath: #filePath).deletingLastPathComponent()
    .deletingLastPathComponent().deletingLastPathComponent()
  private static let program = root.appending(path: "Tools/realfaults")

  /// Whether a program ends well.
  private static func succeeds(_ arguments: String...) -> Bool {
    let process = Process()
    process.executableURL = URL(filePath: "/usr/bin/env")
    process.arguments = arguments
    process.standardOutput = FileHandle.nullDevice
    process.standardError = FileHandle.nullDevice
    guard (try? process.run()) != nil else { return false }
    process.waitUntilExit()
    return process.terminationStatus == 0
  }

  private static let canTrace = succeeds(
    "strace", "-f", "-o", "/dev/null", "-e", "inject=fsync:error=EIO", "true")

  /// Tried in a namespace of its own, so that nothing stays mounted.
  private static let canMount =
    geteuid() == 0 && succeeds("unshare", "--mount", "mount", "-t", "tmpfs", "none", "/mnt")

  @Test(
    "an import under which calls fail or the disk fills up loses nothing and says why it stops",
    .enabled(if: canTrace, "strace is missing or not allowed here"))
  func shortForm() throws {
    let tool = try ToolProcess()
    let ended = try tool.run(
      ["--quick", "--logtool", ToolProcess.tool.path, "--directory", tool.directory.path],
      program: Self.program)
    let comment: Comment = "\(ended.lines.joined(separator: "\n"))\n\(ended.talk)"
    // 2 when only parts could be run, such as without leave to mount anything.
    #expect(ended.status == 0 || ended.status == 2, comment)
    #expect(ended.lines.last?.contains(" 0 failures") == true, comment)
  }

  @Test(
    "a store on a full disk stays readable, and writes resume when there is space again",
    .enabled(if: canMount, "only root can mount a small disk"))
  func fullDisk() throws {
    let tool = try ToolProcess()
    let disk = tool.path("disk")
    try FileManager.default.createDirectory(atPath: disk, withIntermediateDirectories: true)
    try #require(Self.succeeds("mount", "-t", "tmpfs", "-o", "size=4m", "none", disk))
    defer { #expect(Self.succeeds("umount", disk)) }
    let filler = disk + "/filler"
    #expect(Self.succeeds("dd", "if=/dev/zero", "of=\(filler)", "bs=1M", "count=2"))
    let store = try Store.openBlocking(
      at: disk + "/S", configuration: .init(access: .create, durability: .durable))
    let value = String(repeating: "value ", count: 2_000)
    var kept = 0
    for round in 1...2 {
      let error = #expect(throws: TidemarkError.self) {
        while kept < 1_000 {
          try store.blocking.put("key/\(kept)", value)
          kept += 1
        }
      }
      #expect(error?.code == .noSpace)
      #expect(kept > 0 && kept < 1_000)
      // Again and again, without harm.
      for _ in 0..<3 {
        let again = #expect(throws: TidemarkError.self) { try store.blocking.put("more", value) }
        #expect(again?.code == .noSpace)
      }
      for number in 0..<kept { #expect(try store.text(forKey: "key/\(number)") == value) }
      #expect(try !store.contains("more"))
      guard round == 1 else { break }
      let before = kept
      try FileManager.default.removeItem(atPath: filler)
      try store.blocking.put("key/\(kept)", value)
      kept += 1
      #expect(kept > before)
    }
    try store.blocking.close()
    #expect(try tool.run(["verify", "disk/S"]).status == 0)
    #expect(try tool.json("stat", "disk/S")["sequence"] as? Int == kept)
  }
}
