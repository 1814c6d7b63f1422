import Foundation
import Testing
import Tidemark
import TidemarkEngine
@testable import TidemarkNDJSON

@Suite("Real data")
struct FixtureTests {
  private func decoded(_ name: String) throws -> (lines: DecodedLines, text: [UInt8]) {
    let text = try Fixture.bytes(name)
    var lines = DecodedLines(expecting: text.count)
    for chunk in try split(text, pieces: 100_000) { try lines.append(chunk) }
    return (lines, text)
  }

  @Test(
    "the fixtures are read as Foundation reads them, and written to the same entries",
    arguments: [
      ("debian-sample.ndjson.zst", 2_000, 1_996), ("debian-sample-updates.ndjson.zst", 145, 132),
      ("file-history.ndjson.zst", 2_389, 0),
    ])
  func sameAsFoundation(_ name: String, _ count: Int, _ keys: Int) throws {
    let (lines, text) = try decoded(name)
    let entries = lines.entries
    #expect(entries.count == count)
    if keys > 0 { #expect(Set(entries.map(\.key)).count == keys) }
    #expect(lines.unknownFields.isEmpty)
    for (line, entry) in zip(text.split(separator: 10), entries) {
      let object = try #require(
        try JSONSerialization.jsonObject(with: Data(line)) as? [String: Any])
      func bytes(_ name: String) -> [UInt8] { utf8(object[name] as? String ?? "") }
      let operation: DecodedLine.Operation = object["op"] as? String == "put" ? .put : .delete
      let labels = Set((object["labels"] as? [String] ?? []).map { utf8($0) })
      #expect(entry.operation == operation)
      #expect(entry.key == bytes("key"))
      #expect(entry.value == bytes("value"))
      #expect(entry.hash == bytes("hash"))
      #expect(entry.labels == labels.sorted { $0.lexicographicallyPrecedes($1) })
      let time = try Date(object["time"] as? String ?? "", strategy: .iso8601)
      #expect(entry.time == Timestamp(seconds: Int64(time.timeIntervalSince1970)))
    }

    var writer = NDJSONWriter()
    for entry in entries { writer.append(entry) }
    var again = DecodedLines()
    for chunk in try split(writer.bytes) { try again.append(chunk) }
    #expect(again.entries == entries)
  }

  @Test("the sample has what its tests count on")
  func sample() throws {
    let (lines, _) = try decoded("debian-sample.ndjson.zst")
    let games = lines.entries.filter { $0.labels.contains(utf8("section:games")) }
    #expect(games.count == 600)
    let (updates, _) = try decoded("debian-sample-updates.ndjson.zst")
    let keys = Set(lines.entries.map(\.key))
    #expect(updates.entries.filter { keys.contains($0.key) }.count == 95)
  }

  @Test("the file history leads to the keys that are expected of it")
  func history() throws {
    struct State: Decodable {
      var lines: Int
      var sha256: [String: String]
    }
    let (lines, _) = try decoded("file-history.ndjson.zst")
    let states = try JSONDecoder().decode(
      [State].self, from: Data(try Fixture.bytes("file-history.expected.json")))
    #expect(states.count == 6)
    for state in states {
      var keys: Set<[UInt8]> = []
      for entry in lines.entries.prefix(state.lines) {
        if entry.operation == .put { keys.insert(entry.key) } else { keys.remove(entry.key) }
      }
      #expect(keys == Set(state.sha256.keys.map { utf8($0) }), "after \(state.lines) lines")
    }
  }
}
