import Foundation
import Testing
import Tidemark
import TidemarkEngine
import TidemarkTestKit

@Suite("Indexes on the command line")
struct IndexTests {
  private struct Note: Codable, Identifiable, Sendable {
    var id: Int
    var text: String
  }

  @Test("stat tells of each index how many rows it has and about how many bytes")
  func stat() throws {
    let bench = Bench.withNotes()
    let before = try bench.run("stat", "S", "--output", "json").object()
    #expect((before["indexes"] as? [Any])?.isEmpty == true)
    let store = try bench.open("S")
    let notes = try store.collection(
      Note.self, named: "notes",
      CollectionSchema(indexes: [ObjectIndex("text", .folded(\.text))]))
    try store.blocking.write { batch in
      for id in 1...20 { try batch.put(Note(id: id, text: "Note \(id)"), in: notes) }
    }
    try store.blocking.close()
    let stat = try bench.run("stat", "S", "--output", "json").object()
    let index = try #require((stat["indexes"] as? [[String: Any]])?.first)
    #expect(index["collection"] as? String == "notes" && index["name"] as? String == "text")
    #expect(index["rows"] as? Int == 20)
    #expect((index["bytes"] as? Int ?? 0) > 400)
    #expect(stat["keys"] as? Int == (before["keys"] as? Int ?? 0) + 20)
    #expect(bench.run("stat", "S").output.contains("in 20 rows of notes.text"))
  }

  @Test("stat tells of everything else where the catalog of a collection's indexes is damaged")
  func damaged() throws {
    let bench = Bench.withNotes()
    let store = try bench.open("S")
    var batch = OperationBatch()
    let key = Array("\0tidemark/#cnotes".utf8)
    let value = [UInt8](repeating: 0xff, count: 9)
    try batch.addDerived(key.rawSpan, value.rawSpan)
    _ = try store.engine.stage(batch)
    try store.blocking.close()
    let stat = try bench.run("stat", "S", "--output", "json").object()
    #expect(stat["indexes"] is NSNull && stat["keys"] as? Int == 3)
    #expect(bench.run("stat", "S").output.contains("cannot be told"))
  }
}
