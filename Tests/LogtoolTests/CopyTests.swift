import Foundation
import LogtoolKit
import Testing
import TidemarkTestKit

@Suite("Copies from peer to peer")
struct CopyTests {
  private let bench = Bench.withNotes()

  /// Copies through the store "R".
  private func copy(_ source: String = "S", _ target: String = "T") throws -> [String: Int] {
    let run = bench.run("copy", "R", "--from", source, "--to", target, "--output", "json")
    #expect(run.status == 0, "\(run.talk)")
    return try run.object().compactMapValues { $0 as? Int }
  }

  private func value(_ key: String, _ store: String = "T") -> String? {
    let run = bench.run("get", store, key)
    return run.status == 0 ? run.output : nil
  }

  @Test("a copy has each key's value, labels and times, and a second copy sends nothing")
  func everything() throws {
    #expect(try copy()["sent"] == 2)
    let owned = bench.run("export", "S").lines.filter { !$0.contains("\"cache\"") }
    #expect(bench.run("export", "T").lines == owned && owned.count == 2)
    #expect(try copy()["sent"] == 0)
    #expect(bench.run("copy", "S", "--from", "./S", "--to", "T").status == 1)
    #expect(bench.run("copy", "R", "--from", "absent", "--to", "T").status == 66)
    #expect(bench.run("copy", "R", "--from", "ftp://host/x", "--to", "T").status == 64)
  }

  @Test("a copy includes attachments, and counts entries whose attachment the source lacks")
  func attachments() throws {
    let file = FileManager.default.temporaryDirectory.appending(path: "tidemark-\(UUID())")
    defer { try? FileManager.default.removeItem(at: file) }
    var chance = SeededGenerator(seed: 3)
    let content = chance.bytes(5_000_000)
    try Data(content).write(to: file)
    bench.run("put", "S", "film", "{}", "--attach", file.path)
    bench.run("pull", "B", "--from", "S")
    let run = bench.run("copy", "X", "--from", "B", "--to", "Y")
    #expect(run.status == 1 && run.talk.contains("1 entry cannot be copied"), "\(run.talk)")
    #expect(value("note/1", "Y") == "milk, bread" && value("film", "Y") == nil)
    #expect(try copy()["sent"] == 3)
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
    #expect(try copy("old", "new")["sent"] == 40)
    // One device has moved, the other one has not.
    bench.run("put", "one", "k2", "at the new one")
    bench.run("delete", "one", "k3")
    sync("one", "new")
    bench.run("put", "two", "k4", "at the old one")
    bench.run("delete", "two", "k5")
    sync("two", "old")
    bench.run("put", "two", "k6", "not sent")
    // The compaction drops superseded entries before the second copy has read the delete of k5.
    #expect(bench.run("compact", "old", "--drop-history").status == 0)
    _ = try copy("old", "new")
    for _ in 0..<2 {
      sync("two", "new")
      sync("one", "new")
    }
    #expect(bench.run("export", "one").output == bench.run("export", "two").output)
    let held = (1...6).map { value("k\($0)", "two") }
    #expect(held == ["before", "at the new one", nil, "at the old one", nil, "not sent"])
    #expect(bench.run("diff", "one", "new").status == 0)
  }
}
