import Foundation
import Testing
import Tidemark
import TidemarkEngine
@testable import TidemarkNDJSON
import TidemarkTestKit

@Suite("Export and import")
struct RoundTripTests {
  private static func text(_ chance: inout SeededGenerator, atMost count: Int) -> String {
    let pieces = [
      "a", "key", "/", "\"", "\\", "\n", "\u{0}", "\u{1f}", "\u{7f}", "é", "€", "日本", "😀",
      "\u{ffff}", "\u{10ffff}", "e\u{301}", "plain text that is a little longer than a word",
    ]
    var text = ""
    for _ in 0..<chance.int(below: count + 1) { text += chance.pick(pieces) ?? "" }
    return text
  }

  private static func bytes(_ chance: inout SeededGenerator, atMost count: Int) -> [UInt8] {
    if chance.chance(0.3) { return chance.bytes(chance.int(below: count + 1)) }
    return Array(text(&chance, atMost: count).utf8)
  }

  private static func entry(_ chance: inout SeededGenerator) -> PlainEntry {
    var entry = PlainEntry()
    entry.operation = chance.pick([.put, .put, .put, .delete, .touch]) ?? .put
    entry.entryClass = chance.chance(0.3) ? .cache : .owned
    entry.key = bytes(&chance, atMost: 8)
    if entry.key.isEmpty { entry.key = [chance.chance(0.5) ? 0x61 : 0xff] }
    if entry.operation == .put { entry.value = bytes(&chance, atMost: 60) }
    if chance.chance(0.5) { entry.hash = Array(bytes(&chance, atMost: 20).prefix(64)) }
    var labels: Set<[UInt8]> = []
    let labelCount = entry.operation == .put ? chance.int(below: 6) : 0
    for _ in 0..<labelCount {
      let label = bytes(&chance, atMost: 4)
      if !label.isEmpty { labels.insert(label) }
    }
    entry.labels = labels.sorted { $0.lexicographicallyPrecedes($1) }
    if chance.chance(0.6) {
      entry.time = Timestamp(
        seconds: Int64(chance.int(in: -62_167_219_200...253_402_300_799)),
        nanoseconds: chance.chance(0.5) ? 0 : UInt32(chance.int(below: 1_000_000_000)))
    }
    if chance.chance(0.3) { entry.maxAge = UInt32(truncatingIfNeeded: chance.next()) }
    return entry
  }

  @Test("a written entry is read back the same, in any chunks, and Foundation reads it too")
  func writtenAndRead() throws {
    let seed = UInt64.random(in: 0 ... .max)
    var chance = SeededGenerator(seed: seed)
    let entries = (0..<2_000).map { _ in Self.entry(&chance) }
    var writer = NDJSONWriter()
    for entry in entries { writer.append(entry) }

    let splitter = LineSplitter(linesPerChunk: 1 + chance.int(below: 300))
    var found: [PlainEntry] = []
    var lines = DecodedLines()
    let chunks = try split(
      writer.bytes, pieces: 1 + chance.int(below: 5_000), using: splitter)
    for chunk in chunks {
      lines.removeAll()
      try lines.append(chunk)
      #expect(lines.unknownFields.isEmpty)
      found += lines.entries
    }
    #expect(found.count == entries.count, "seed \(seed)")
    for (index, pair) in zip(found, entries).enumerated() {
      #expect(pair.0 == pair.1, "seed \(seed), entry \(index)")
    }

    for (index, line) in writer.bytes.split(separator: 10).enumerated() {
      let object = try #require(
        try JSONSerialization.jsonObject(with: Data(line)) as? [String: Any], "seed \(seed)")
      let entry = entries[index]
      let key = (object["key"] as? String).map { Array($0.utf8) }
      let coded = (object["key_base64"] as? String).flatMap { Data(base64Encoded: $0) }
      #expect(key ?? coded.map { Array($0) } == entry.key, "seed \(seed), entry \(index)")
      let texts = (object["labels"] as? [String] ?? []).map { Array($0.utf8) }
      let others = (object["labels_base64"] as? [String] ?? []).map {
        Data(base64Encoded: $0).map { Array($0) } ?? []
      }
      #expect(
        (texts + others).sorted { $0.lexicographicallyPrecedes($1) } == entry.labels,
        "seed \(seed), entry \(index)")
      #expect(object["max_age"] as? UInt32 == entry.maxAge, "seed \(seed), entry \(index)")
    }
  }

  @Test("lines that Foundation writes are read to the same entries")
  func writtenByFoundation() throws {
    let seed = UInt64.random(in: 0 ... .max)
    var chance = SeededGenerator(seed: seed)
    for run in 0..<2_000 {
      let key = "k" + Self.text(&chance, atMost: 8)
      let value = Self.text(&chance, atMost: 60)
      let labels = (0..<chance.int(below: 5)).map { "\($0)" + Self.text(&chance, atMost: 4) }
      let object: [String: Any] = [
        "key": key, "value": value, "labels": Array(labels.reversed()), "max_age": run,
        "seq": run, "extra": ["a": [1, -2.5e10, true, NSNull()] as [Any]],
      ]
      let line = [UInt8](try JSONSerialization.data(withJSONObject: object))
      let entry = try decode(bytes: line)
      #expect(entry.key == utf8(key), "seed \(seed), run \(run)")
      #expect(entry.value == utf8(value), "seed \(seed), run \(run)")
      #expect(entry.labels == labels.map { utf8($0) }, "seed \(seed), run \(run)")
      #expect(entry.maxAge == UInt32(run), "seed \(seed), run \(run)")
    }
  }
}
