import Foundation
import LogtoolKit
import Testing
import Tidemark
import TidemarkEngine
import TidemarkSync
import TidemarkTestKit

@Suite("Copies from peer to peer")
struct CopyTests {
  private let bench = Bench.withNotes()

  private func copy(_ source: String = "S", _ target: String = "T") throws -> [String: Int] {
    let run = bench.run("copy", "--from", source, "--to", target, "--output", "json")
    #expect(run.status == 0, "\(run.talk)")
    return try run.object().compactMapValues { $0 as? Int }
  }

  private func value(_ key: String, _ store: String = "T") -> String? {
    let run = bench.run("get", store, key)
    return run.status == 0 ? run.output : nil
  }

  /// The entries that are replicated, without cached ones.
  private func owned(_ store: String) -> [String] {
    bench.run("export", store).lines.filter { !$0.contains("\"cache\"") }
  }

  @Test("all that keys hold is copied, and a second copy finds it there")
  func everything() throws {
    #expect(
      try copy() == ["copied": 2, "same": 0, "kept": 0, "refused": 0, "missing": 0])
    #expect(owned("T") == owned("S") && owned("T").count == 2)
    #expect(try copy()["same"] == 2)
    #expect(bench.run("copy", "--from", "S", "--to", "./S").status == 1)
    #expect(bench.run("copy", "--from", "absent", "--to", "T").status == 66)
    #expect(bench.run("copy", "--from", "ftp://host/x", "--to", "T").status == 64)
  }

  @Test("a second copy takes what has changed since, deletes too, and leaves others' changes")
  func again() throws {
    for key in ["a", "b", "c", "d"] { bench.run("put", "S", key, "1") }
    _ = try copy()
    bench.run("put", "S", "a", "2")
    bench.run("delete", "S", "b")
    bench.run("put", "S", "new", "1")
    bench.run("put", "T", "c", "theirs")
    bench.run("delete", "T", "d")
    bench.run("put", "S", "d", "2")
    let report = try copy()
    #expect(report["copied"] == 3 && report["kept"] == 2)
    #expect(value("a") == "2" && value("b") == nil && value("new") == "1")
    #expect(value("c") == "theirs" && value("d") == nil)
  }

  @Test("contents of attachments are copied, and those that the source lacks are told")
  func attachments() throws {
    let file = FileManager.default.temporaryDirectory.appending(path: "tidemark-\(UUID())")
    defer { try? FileManager.default.removeItem(at: file) }
    var chance = SeededGenerator(seed: 3)
    let content = chance.bytes(AttachRequest.mostBytes + 100_000)
    try Data(content).write(to: file)
    bench.run("put", "S", "film", "{}", "--attach", file.path)
    bench.run("pull", "B", "--from", "S")
    let run = bench.run("copy", "--from", "B", "--to", "T")
    #expect(run.status == 1 && run.talk.contains("lacks the content of the attachment"))
    #expect(value("note/1") == "milk, bread" && value("film") == nil)
    #expect(try copy() == ["copied": 1, "same": 2, "kept": 0, "refused": 0, "missing": 0])
    #expect(bench.run("get", "T", "film", "--attachment").bytes == content)
  }

  @Test("devices that write before, between and after the copies end with the same data")
  func devices() throws {
    func sync(_ device: String, _ server: String) {
      // A device that has moved reads before it sends, as one that replicates both ways does.
      for (command, option) in [("pull", "--from"), ("replay", "--to"), ("pull", "--from")] {
        let run = bench.run([command, device, option, server, "--name", "server"])
        #expect(run.status == 0, "\(run.talk)")
      }
      bench.clock.advance(by: .seconds(1))
    }
    for store in ["old", "one", "two"] { bench.run("create", store) }
    for number in 0..<40 { bench.run("put", "one", "k\(number)", "1") }
    sync("one", "old")
    sync("two", "old")
    bench.run("put", "one", "k1", "before")
    sync("one", "old")
    _ = try copy("old", "new")
    // One device has moved, the other one has not.
    bench.run("put", "one", "k2", "at the new one")
    bench.run("delete", "one", "k3")
    sync("one", "new")
    bench.run("put", "two", "k4", "at the old one")
    bench.run("delete", "two", "k5")
    sync("two", "old")
    bench.run("put", "two", "k6", "not sent")
    _ = try copy("old", "new")
    for _ in 0..<2 {
      sync("two", "new")
      sync("one", "new")
    }
    #expect(bench.run("export", "one").output == bench.run("export", "two").output)
    let held = (1...6).map { value("k\($0)", "two") }
    #expect(
      held == ["before", "at the new one", nil, "at the old one", nil, "not sent"])
    #expect(bench.run("diff", "one", "new").status == 0)
  }
}
