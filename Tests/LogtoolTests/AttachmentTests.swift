import Foundation
import Testing
import TidemarkEngine
import TidemarkTestKit

@Suite("Attachments on the command line")
final class AttachmentTests {
  private let bench = Bench.withNotes()
  private let file = FileManager.default.temporaryDirectory.appending(
    path: "tidemark-attachment-\(UUID().uuidString)")
  private let content: [UInt8]

  init() throws {
    var chance = SeededGenerator(seed: 5)
    content = chance.bytes(200_000)
    try Data(content).write(to: file)
  }

  deinit { try? FileManager.default.removeItem(at: file) }

  private var hash: String {
    let content = content
    return AttachmentID.text(SHA256.hash(content.rawSpan))
  }

  private func put(_ key: String) {
    #expect(bench.run("put", "S", key, "{}", "--attach", file.path).status == 0)
  }

  @Test("a file that is put beside a value comes back byte for byte, and stat and verify count it")
  func roundTrip() throws {
    put("film/1")
    put("film/2")
    #expect(bench.run("put", "S", "film/3", "--attach", file.path).status == 0)
    #expect(bench.run("get", "S", "film/1", "--attachment").bytes == content)
    #expect(bench.run("get", "S", "film/1").output == "{}")
    #expect(bench.run("get", "S", "film/3").output == "")
    let entry = try bench.run("get", "S", "film/1", "--output", "json").object()
    #expect(entry["attachment"] as? String == "sha256:\(hash):200000")
    let stat = try bench.run("stat", "S", "--output", "json").object()
    #expect((stat["attachments"] as? [String: Any])?["count"] as? Int == 1)
    #expect(bench.run("stat", "S").output.contains("attachments"))
    let report = try bench.run("verify", "S", "--output", "json").object()
    #expect(report["attachments"] as? Int == 1)
  }

  @Test("a key without an attachment, and a file that is not there, are clear errors")
  func errors() {
    let none = bench.run("get", "S", "note/1", "--attachment")
    #expect(none.status == 1 && none.talk.contains("no attachment"))
    #expect(bench.run("put", "S", "k", "v", "--attach", "/nowhere").status != 0)
    #expect(bench.run("get", "S", "k").status == 1)
  }

  @Test("replay sends content once, pull leaves it unless it is asked for")
  func replicated() throws {
    put("film/1")
    let sent = try bench.run("replay", "S", "--to", "T", "--output", "json").object()
    #expect(sent["attachment_bytes_sent"] as? Int == content.count)
    #expect(bench.run("get", "T", "film/1", "--attachment").bytes == content)
    #expect(bench.run("pull", "U", "--from", "T").status == 0)
    #expect(bench.run("get", "U", "film/1", "--attachment").status == 1)
    #expect(bench.run("verify", "U").status == 0)
    let run = bench.run("pull", "U", "--from", "T", "--attachments", "--output", "json")
    #expect(try run.object()["attachment_bytes_taken"] as? Int == content.count)
    #expect(bench.run("get", "U", "film/1", "--attachment").bytes == content)
    #expect(bench.run("diff", "S", "U").status == 0)
    let again = try bench.run("replay", "S", "--to", "T", "--output", "json").object()
    #expect(again["attachment_bytes_sent"] as? Int == 0)
  }

  @Test("a compaction frees what no entry names any more, and says so")
  func freed() throws {
    put("film/1")
    #expect(bench.run("delete", "S", "film/1").status == 0)
    let report = try bench.run("compact", "S", "--drop-history", "--output", "json").object()
    #expect(report["attachments_removed"] as? Int == 1)
    #expect(report["attachment_bytes_freed"] as? Int ?? 0 > 200_000)
  }

  @Test("an export with a directory brings everything into another store, one without says so")
  func exported() throws {
    put("film/1")
    let bare = bench.run("export", "S", "--prefix", "film/")
    #expect(bare.talk.contains("--attachments"))
    let whole = bench.run("export", "S", "--prefix", "film/", "--attachments", "files")
    #expect(whole.status == 0 && whole.output == bare.output)
    let without = bench.run("import", "T", input: bare.output)
    #expect(without.status == 0 && without.talk.contains("content of 1 attachment"))
    #expect(bench.run("get", "T", "film/1", "--attachment").status == 1)
    let with = bench.run("import", "T", "--attachments", "files", "-", input: bare.output)
    #expect(with.status == 0 && !with.talk.contains("content of"))
    #expect(bench.run("get", "T", "film/1", "--attachment").bytes == content)
  }

  @Test("content that is not what its name says is refused, and so is a name that is none")
  func hostile() throws {
    put("film/1")
    let exported = bench.run("export", "S", "--prefix", "film/", "--attachments", "files").output
    let file = try bench.disk.open("files/" + hash, .readWrite)
    let wrong = [content[0] ^ 1]
    try file.writeFully(wrong.rawSpan, at: 0)
    file.close()
    #expect(
      bench.run("import", "T", "--attachments", "files", "-", input: exported).status == 65)
    for name in ["", "sha256:", "sha256:00:1", "sha256:\(String(repeating: "0", count: 64)):-1"] {
      let line = #"{"key":"k","value":"","attachment":"\#(name)"}"#
      let run = bench.run("import", "T", input: line + "\n")
      #expect(run.status == 1 && run.talk.contains("attachment must be"), "\(name)")
    }
  }
}
