import Testing
import Tidemark
import TidemarkEngine

@testable import LogtoolKit

@Suite("Exit status and errors")
struct ExitStatusTests {
  private let bench = Bench.withNotes()

  private func expect(
    _ status: Int32, _ arguments: String..., saying text: String = "",
    sourceLocation: SourceLocation = #_sourceLocation
  ) {
    let run = bench.run(arguments)
    #expect(run.status == status, "\(arguments)", sourceLocation: sourceLocation)
    #expect(run.bytes.isEmpty, sourceLocation: sourceLocation)
    // One line, that begins with the tool's name.
    #expect(run.talk.hasPrefix("logtool: "), sourceLocation: sourceLocation)
    #expect(run.talk.filter(\.isNewline).count == 1, "\(run.talk)", sourceLocation: sourceLocation)
    #expect(run.talk.contains(text), "\(run.talk)", sourceLocation: sourceLocation)
  }

  @Test("a missing store is 66 for every command that does not create one")
  func missingStore() throws {
    for arguments in [
      ["get", "M", "k"], ["put", "M", "k", "v"], ["delete", "M", "k"], ["scan", "M"],
      ["labels", "M"], ["history", "M", "k"], ["at", "M", "1"], ["diff", "M", "1", "2"],
      ["tail", "M"], ["stat", "M"], ["verify", "M"], ["doctor", "M"], ["compact", "M"],
      ["snapshot", "M"], ["export", "M"], ["explain", "M", "k"], ["replay", "M", "--to", "T"],
      ["pending", "M"], ["parked", "M"], ["peers", "M"], ["pull", "T", "--from", "M"],
      ["delete", "M", "--prefix", "k"], ["undo", "M", "--since", "1"],
    ] {
      let run = bench.run(arguments)
      #expect(run.status == 66, "\(arguments)")
      #expect(run.talk.contains("no store at M"), "\(run.talk)")
    }
    #expect(try bench.disk.kind("M") == nil)
    #expect(try bench.disk.kind("T") == nil)
    expect(66, "put", "M", "k", "v", saying: "make an empty one: logtool create M")
  }

  @Test("a directory that is no store, and a file, are 66, for import too")
  func noStore() throws {
    try bench.disk.createDirectory("D")
    try bench.disk.open("D/letter.txt", .create).close()
    for path in ["D", "D/letter.txt"] {
      expect(66, "stat", path, saying: path)
      expect(66, "import", path, saying: path)
      expect(66, "create", path, saying: path)
      expect(66, "put", path, "k", "v")
    }
    #expect(try bench.disk.list("D") == ["letter.txt"])
  }

  @Test("an empty key and one of 65,536 bytes are 64")
  func keys() {
    for key in ["", String(repeating: "k", count: 65_536)] {
      expect(64, "put", "S", key, "v", saying: "1 to 65535 bytes")
      expect(64, "get", "S", key, saying: "1 to 65535 bytes")
      expect(64, "delete", "S", key)
      expect(64, "history", "S", key)
      expect(64, "at", "S", "1", key)
      expect(64, "explain", "S", key)
    }
    #expect(bench.run("put", "S", String(repeating: "k", count: 65_535), "v").status == 0)
  }

  @Test("a label out of bounds is 64")
  func labels() {
    for label in ["", String(repeating: "l", count: 256)] {
      expect(64, "put", "S", "k", "v", "--label", label, saying: "1 to 255 bytes")
      expect(64, "scan", "S", "--label", label)
    }
    let many = (0...64).flatMap { ["--label", "l\($0)"] }
    #expect(bench.run(["put", "S", "k", "v"] + many).status == 64)
  }

  @Test("a store that another program writes to is 75 and says by whom, reading goes on")
  func locked() throws {
    let store = try bench.open("S")
    try store.blocking.put("other", "1")
    expect(75, "put", "S", "k", "v", saying: "has the store open already")
    expect(75, "import", "S")
    expect(75, "compact", "S")
    expect(75, "snapshot", "S")
    #expect(bench.run("get", "S", "other").output == "1")
    #expect(bench.run("verify", "S").status == 0)
    try store.blocking.close()
    #expect(bench.run("put", "S", "k", "v").status == 0)
  }

  @Test("a compaction that is not to wait for another one has the status of a locked store")
  func busy() {
    #expect(ExitStatus(TidemarkError(.busy, "a compaction is running already")) == .locked)
  }

  @Test("a store cannot be its own peer, however its path is written")
  func samePeer() {
    for path in ["S", "./S", "S/", "x/../S"] {
      expect(1, "replay", "S", "--to", path, saying: "the same store")
      expect(1, "pull", path, "--from", "S", saying: "the same store")
    }
  }

  @Test("bad usage is 64 with a line that says what is wrong")
  func usage() {
    expect(64, "nonsense", saying: "nonsense")
    expect(64, "get", "S", saying: "key")
    for (command, option) in [
      ("scan S", "--limit"), ("history S k", "--limit"), ("tail S", "--lines"),
      ("put S k v", "--max-age"), ("put S k v", "--if-sequence"),
    ] {
      let arguments = command.split(separator: " ").map(String.init)
      for number in ["-1", "many"] {
        let talk = bench.run(arguments + [option, number]).talk
        #expect(talk.contains("'\(number)' is invalid for '\(option)"), "\(talk)")
        #expect(talk.contains("not negative"), "\(talk)")
      }
    }
    expect(64, "scan", "S", "--limit", "0", saying: "--limit")
    for arguments in [
      ["at", "S", "tomorrow"], ["tail", "S", "--since", "tomorrow"],
      ["export", "S", "--at", "tomorrow"], ["diff", "S", "1", "tomorrow"],
      ["undo", "S", "--since", "tomorrow"],
    ] {
      let run = bench.run(arguments)
      #expect(
        run.status == 64 && run.talk.contains("give a sequence (1000), a date"), "\(run.talk)")
    }
    expect(64, "scan", "S", "--order", "size", saying: "size")
    expect(64, "scan", "S", "--keys", "--values", saying: "exclude")
    expect(64, "stat", "S", "--output", "xml", saying: "xml")
    expect(64, "stat", "S", "--bogus", saying: "--bogus")
    expect(64, "replay", "S", saying: "--to")
  }

  @Test("a newer format is 76")
  func newerFormat() throws {
    try setFormat(99)
    try expectRefused(saying: "later version")
  }

  @Test("the format of an earlier version is 76, with the way out")
  func olderFormat() throws {
    try setFormat(1)
    try expectRefused(saying: "version 1 of the format")
  }

  private func setFormat(_ major: UInt8) throws {
    // Bytes 8 and 9 of MANIFEST are the format's major version; its checksum comes at 32.
    for name in StoreLayout.manifests {
      let file = try bench.disk.open("S/" + name, .readWrite)
      var bytes = try file.read(try file.length(), at: 0)
      bytes[8] = major
      bytes.replaceSubrange(32..<40, with: [UInt8](repeating: 0, count: 8))
      let sum = XXH64.hash(bytes.rawSpan)
      for i in 0..<8 { bytes[32 + i] = UInt8(truncatingIfNeeded: sum >> (8 * UInt64(i))) }
      try file.writeFully(bytes.rawSpan, at: 0)
      file.close()
    }
  }

  @Test("a segment of a newer format is 76, and no damage")
  func newerSegment() throws {
    let status = try bench.run("stat", "S", "--output", "json").object()
    let segments = try #require(status["segments"] as? [[String: Any]])
    let name = try #require(segments[0]["file"] as? String)
    let file = try bench.disk.open("S/" + name, .readWrite)
    // The same page twice: bytes 8 and 9 are the major version, the last four its checksum.
    for start in [0, 4096] {
      var page = try file.read(4096, at: start)
      page[8] = 99
      let sum = CRC32C.checksum(page.rawSpan.extracting(0..<4092))
      for i in 0..<4 { page[4092 + i] = UInt8(truncatingIfNeeded: sum >> (8 * UInt32(i))) }
      try file.writeFully(page.rawSpan, at: start)
    }
    file.close()
    try expectRefused(saying: "later version")
  }

  /// Every command refuses the store, says what to do, and changes nothing.
  private func expectRefused(saying words: String) throws {
    let before = try bench.files(in: "S")
    for arguments in [
      ["stat", "S"], ["get", "S", "note/1"], ["scan", "S", "--values"], ["export", "S"],
      ["verify", "S"], ["doctor", "S"], ["put", "S", "k", "v"], ["import", "S"],
      ["compact", "S"], ["compact", "S", "--dry-run"], ["snapshot", "S"], ["rebuild", "S"],
      ["repair", "S", "--into", "T"], ["backup", "S", "T"], ["replay", "S", "--to", "T"],
    ] {
      let run = bench.run(arguments)
      #expect(run.status == 76, "\(arguments): \(run.status) \(run.output) \(run.talk)")
      #expect(run.talk.contains(words), "\(arguments): \(run.talk)")
      #expect(run.talk.filter(\.isNewline).count == 1, "\(arguments): \(run.talk)")
      #expect(try bench.files(in: "S") == before, "\(arguments)")
      #expect(try bench.disk.kind("T") == nil, "\(arguments)")
    }
  }

  @Test("a flipped bit is found by verify, explained by doctor, and no write goes through then")
  func damage() throws {
    let status = try bench.run("stat", "S", "--output", "json").object()
    let segments = try #require(status["segments"] as? [[String: Any]])
    let name = try #require(segments[0]["file"] as? String)
    let file = try bench.disk.open("S/" + name, .readWrite)
    var byte = try file.read(1, at: 8192 + 100)
    byte[0] ^= 1
    try file.writeFully(byte.rawSpan, at: 8192 + 100)
    file.close()

    let doctor = bench.run("doctor", "S")
    #expect(doctor.status == 2)
    #expect(doctor.output.contains(name) && doctor.output.contains("logtool repair S --into"))
    let files = try bench.files(in: "S")
    bench.run("doctor", "S")
    #expect(try bench.files(in: "S") == files)

    let verify = bench.run("verify", "S", "--output", "json")
    #expect(verify.status == 2)
    let findings = try #require(try verify.object()["findings"] as? [[String: Any]])
    #expect(findings.first?["file"] as? String == name)
    #expect(findings.first?["offset"] is Int)
    #expect(findings.first?["first_sequence"] is Int)
    #expect(
      try verify.names().filter { $0.hasPrefix("findings.") } == [
        "findings.file", "findings.first_sequence", "findings.last_sequence",
        "findings.length", "findings.loses_entries", "findings.message", "findings.offset",
      ])
    expect(65, "put", "S", "k", "v", saying: name)
    expect(65, "import", "S")
    // A reading command that meets the damage says so too.
    #expect(bench.run("export", "S").status == 65)
  }
}
