import Foundation
import Testing
import TidemarkTestKit

/// `Tools/read-store` shares no code with the engine. It was written from FileFormat.md, so where
/// it prints something else than the tool, one of the three is wrong.
@Suite("The second reader of the format", .serialized)
struct ReaderTests {
  private static let root = URL(filePath: #filePath).deletingLastPathComponent()
    .deletingLastPathComponent().deletingLastPathComponent()
  private static let reader = root.appending(path: "Tools/read-store")

  private let tool: ToolProcess

  init() throws { tool = try ToolProcess() }

  private func fixture(_ name: String) -> String {
    Self.root.appending(path: "Tests/Fixtures/\(name).ndjson.zst").path
  }

  private func read(_ arguments: String..., zstd: String = "") throws -> ToolProcess.Ended {
    try tool.run(arguments, program: Self.reader, environment: ["READ_STORE_ZSTD": zstd])
  }

  private func run(_ arguments: String...) throws {
    let ended = try tool.run(arguments)
    #expect(ended.status == 0, "\(arguments) says: \(ended.talk)")
  }

  /// Expects that both readers print the same bytes and end alike, for the newest state, the
  /// history and the states at some sequences.
  private func expectSame(_ store: String, at sequences: [Int]) throws {
    let views = [[], ["--history"]] + sequences.map { ["--at", "\($0)"] }
    for view in views {
      let theirs = try tool.run(["export", store, "--quiet", "--library-keys"] + view)
      let ours = try tool.run([store] + view, program: Self.reader)
      #expect(ours.status == theirs.status, "\(view): \(ours.talk)")
      #expect(ours.output == theirs.output, "\(view)")
    }
  }

  /// Expects that neither finds anything wrong.
  private func expectSound(_ store: String) throws {
    try run("verify", store)
    let ended = try read(store, "--check")
    #expect(ended.status == 0)
    #expect(ended.lines == [])
  }

  @Test("an imported store reads alike, in every state from the first to the last")
  func imported() throws {
    try run("import", "S", fixture("file-history"))
    try expectSame("S", at: [0, 1, 289, 1000, 1001, 2388, 2389, 2390])
    try expectSound("S")
  }

  @Test("a store that was updated and compacted reads alike")
  func compacted() throws {
    try run("import", "S", fixture("debian-sample"))
    try run("import", "S", fixture("file-history"))
    try run("import", "S", fixture("debian-sample-updates"))
    let before = try read("S", "--history").output
    try run("compact", "S")
    try expectSame("S", at: [1, 2000, 4389, 4534])
    try expectSound("S")
    #expect(try read("S", "--history").output == before)
    // Without libzstd the program zstd decompresses.
    #expect(try read("S", "--history", zstd: "command").output == before)
    try run("import", "S", fixture("debian-sample"))
    try run("compact", "S", "--dense")
    try expectSame("S", at: [4534, 5000])
    try expectSound("S")
  }

  @Test("a store without its history reads alike, and refuses the same states")
  func dropped() throws {
    try run("import", "S", fixture("file-history"))
    try run("compact", "S", "--drop-history")
    #expect(try read("S", "--at", "2388").status == 1)
    try expectSame("S", at: [0, 1, 2388, 2389, 2390])
    try run("import", "S", fixture("debian-sample-updates"))
    try expectSame("S", at: [2388, 2389, 2400])
    try expectSound("S")
  }

  @Test("a store with a dictionary reads alike")
  func dictionary() throws {
    for _ in 0..<4 { try run("import", "S", fixture("debian-sample")) }
    try run("compact", "S", "--drop-history")
    let segments = try FileManager.default.contentsOfDirectory(atPath: tool.path("S/log"))
    #expect(segments.count == 1)
    let file = URL(filePath: tool.path("S/log/\(try #require(segments.first))"))
    // Length of the dictionary in the header page.
    #expect(try Data(contentsOf: file)[72..<76].contains { $0 != 0 })
    try expectSame("S", at: [8000])
    try expectSound("S")
  }

  @Test("touches, deletes, records of the engine and odd bytes read alike")
  func operations() throws {
    let long = Data((0..<100_000).map { UInt8(truncatingIfNeeded: $0 &* $0 >> 7) })
    try tool.write(
      #"""
      {"key":"a","value":"1","hash":"0aff","labels":["y","x"],"time":"2026-01-01T00:00:00.25Z"}
      {"key":"b","value":"\u0000\u001f\"\\\n\u007fé\u2028😀","max_age":60,"class":"cache"}
      {"key":"empty","value":""}
      {"key_base64":"/wA=","value_base64":"gIH/","hash":"\"ETAG\""}
      {"key":"long","value_base64":"\#(long.base64EncodedString())"}
      {"op":"touch","key":"a","max_age":5,"hash":"0BFF"}
      {"op":"touch","key":"a","max_age":0,"time":"2026-01-02T00:00:00Z"}
      {"op":"touch","key":"b","hash":"0b"}
      {"op":"delete","key":"b","time":"1969-12-31T23:59:59.999999999Z"}
      {"op":"delete","key":"empty"}
      {"key":"empty","value":"","time":"0000-02-29T00:00:00Z"}

      """#, to: "in.ndjson")
    try run("import", "S", "in.ndjson")
    // The source remembers in its log how far it was sent, in an entry that nobody sees.
    try run("replay", "S", "--to", "T")
    try run("put", "S", "behind", "the record")
    try expectSame("S", at: Array(0...14))
    try expectSame("T", at: [7])
    try expectSound("S")
    try expectSound("T")
    try run("compact", "S")
    try expectSame("S", at: [6, 8, 14])
    try run("compact", "S", "--drop-history")
    try expectSame("S", at: [11, 13])
    try expectSound("S")
  }

  @Test("a store whose writer was killed reads alike, and so does one with a torn tail")
  func killed() throws {
    let random = SeededRandom(seed: 11)
    // Values that do not compress, so that a batch takes several frames.
    var lines = ""
    for line in 1...20_000 {
      let noise = (0..<100).map { _ in String(random.int(below: .max), radix: 36) }
      lines += "{\"key\":\"key/\(line % 700)\",\"value\":\"\(noise.joined())\"}\n"
    }
    try tool.write(lines, to: "in.ndjson")
    try tool.pour("in.ndjson", into: "pipe")
    let ended = try tool.run(
      ["import", "S", "pipe", "--output", "jsonl"], signal: SIGKILL, afterLines: 3)
    #expect(ended.wasKilled)
    #expect(try tool.json("stat", "S")["closed_cleanly"] as? Bool == false)
    try expectSame("S", at: [1, 1000, 2999])
    try expectSound("S")
    let segments = try FileManager.default.contentsOfDirectory(atPath: tool.path("S/log"))
    let path = tool.path("S/log/\(try #require(segments.max()))")
    let bytes = try Data(contentsOf: URL(filePath: path))
    let used = (bytes.lastIndex { $0 != 0 } ?? 0) + 1
    for length in [used - 1, used - 100_000, used / 2, 20_000] {
      try bytes.prefix(length).write(to: URL(filePath: path))
      try expectSame("S", at: [1])
      try expectSound("S")
    }
  }

  @Test("one flipped bit in any file is found and named, and no wrong value is printed")
  func flippedBit() throws {
    try run("import", "S", fixture("debian-sample-updates"))
    try run("import", "S", fixture("file-history"))
    let sound = try read("S", "--history").output
    let seed = UInt64.random(in: 0...(.max))
    let random = SeededRandom(seed: seed)
    let files = try FileManager.default.subpathsOfDirectory(atPath: tool.path("S")).filter {
      $0.hasPrefix("MANIFEST") || $0.hasSuffix(".seg") || $0.hasSuffix(".idx")
    }.sorted()
    #expect(files.count >= 5)
    for name in files {
      let file = URL(filePath: tool.path("S/\(name)"))
      let bytes = try Data(contentsOf: file)
      let places = [20, bytes.count - 1] + (0..<3).map { _ in random.int(below: bytes.count) }
      for place in places {
        let bit = random.int(below: 8)
        let comment: Comment = "seed \(seed): \(name), byte \(place), bit \(bit)"
        var flipped = bytes
        flipped[place] ^= 1 << bit
        try flipped.write(to: file)
        let check = try read("S", "--check")
        #expect(check.status == 2, comment)
        #expect(check.lines.contains { $0.hasPrefix("\(name), offset ") }, comment)
        let history = try read("S", "--history")
        #expect(history.status == 0 || history.status == 65, comment)
        #expect(history.status != 0 || history.output == sound, comment)
        #expect(history.status == 0 || history.talk.split(separator: "\n").count == 1, comment)
      }
      try bytes.write(to: file)
    }
    try expectSound("S")
  }

  @Test("attachments read alike, and one flipped bit in any of their files is found and named")
  func attachments() throws {
    let seed = UInt64.random(in: 0...(.max))
    var chance = SeededGenerator(seed: seed)
    let content = chance.bytes(100_000)
    try tool.write(String(decoding: content.map { 0x61 + $0 % 26 }, as: UTF8.self), to: "file")
    try tool.write("", to: "none")
    try run("create", "S")
    try run("put", "S", "film", "{}", "--attach", tool.path("file"))
    try run("put", "S", "empty", "--attach", tool.path("none"))
    try expectSame("S", at: [1, 2])
    try expectSound("S")
    let names = try FileManager.default.contentsOfDirectory(atPath: tool.path("S/attachments"))
    #expect(names.count == 2)
    for name in names.sorted() {
      let file = URL(filePath: tool.path("S/attachments/\(name)"))
      let bytes = try Data(contentsOf: file)
      for place in [0, 20, 60, 200, 255, bytes.count - 1, chance.int(below: bytes.count)] {
        var flipped = bytes
        flipped[place] ^= 1 << UInt8(chance.int(below: 8))
        try flipped.write(to: file)
        let comment: Comment = "seed \(seed): \(name), byte \(place)"
        let check = try read("S", "--check")
        #expect(check.status == 2, comment)
        #expect(check.lines.contains { $0.hasPrefix("attachments/\(name), offset ") }, comment)
        #expect(try tool.run(["verify", "S"]).status == 2, comment)
      }
      try bytes.write(to: file)
    }
    try expectSound("S")
  }

  @Test("a path that is no store, damaged or asked for wrongly, ends with one line and a status")
  func refusals() throws {
    try run("import", "S", fixture("debian-sample-updates"))
    #expect(try read("missing").status == 66)
    #expect(try read("S", "--at", "146").status == 64)
    for name in ["MANIFEST.0", "MANIFEST.1"] {
      try Data(count: 20_000).write(to: URL(filePath: tool.path("S/\(name)")))
    }
    let ended = try read("S")
    #expect(ended.status == 65)
    #expect(ended.talk.hasPrefix("read-store: MANIFEST.") && ended.output.isEmpty)
    #expect(ended.talk.split(separator: "\n").count == 1)
    #expect(try read("S", "--check").status == 2)
    // An interrupted creation leaves these within the first copy of MANIFEST.
    for name in ["MANIFEST.1", "log", "index"] {
      try FileManager.default.removeItem(atPath: tool.path("S/\(name)"))
    }
    #expect(try read("S").status == 66)
    #expect(try read("S", "--check").status == 66)
    #expect(try tool.run(["verify", "S"]).status == 66)
  }
}
