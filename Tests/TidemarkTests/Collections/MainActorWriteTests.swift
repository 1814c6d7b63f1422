import Testing
import Tidemark
import TidemarkTestKit

/// Views call from the main actor, and so does a program's `main.swift`. Closures within the one
/// that is handed over check at run time where they are called.
@Suite("Writes from the main actor")
@MainActor struct MainActorWriteTests {
  struct Note: Codable, Identifiable, Sendable {
    var id: String
    var tags: [String]
  }

  let machine = Machine()
  var suffix = "!"

  @Test("the closure of update runs on the main actor when its caller does")
  func update() async throws {
    let store = try machine.open()
    let notes = try store.collection(Note.self, named: "notes")
    try await notes.put(Note(id: "1", tags: ["a", "b"]))
    for count in 1...3 {
      try await notes.update("1") { note in
        MainActor.assertIsolated()
        note.tags = note.tags.map { $0 + suffix }
      }
      let end = String(repeating: "!", count: count)
      #expect(try notes.get("1")?.tags == ["a" + end, "b" + end])
    }
    try await store.close()
  }

  @Test("a batch is filled where its caller runs", arguments: [1, 3, 40])
  func batch(count: Int) async throws {
    let store = try machine.open(usesThreads: true)
    let notes = try store.collection(Note.self, named: "notes")
    let all = (0..<count).map { Note(id: "\($0)", tags: [suffix]) }
    for durability in [Durability.buffered, .durable] {
      try await store.write(durability: durability) { batch in
        MainActor.assertIsolated()
        try all.forEach { try batch.put($0, in: notes) }
      }
    }
    #expect(try notes.count() == count)
    try await store.close()
  }
}
