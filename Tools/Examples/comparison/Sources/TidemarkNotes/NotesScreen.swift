import Tidemark

nonisolated struct Note: Codable, Identifiable, Sendable {
  var id: String
  var title: String
  var isDone = false
}

struct NotesScreen {
  let notes: ObjectCollection<Note, String>

  init(at path: String) async throws {
    let store = try await Store.open(at: path)
    notes = try store.collection(
      Note.self, named: "notes",
      CollectionSchema(indexes: [ObjectIndex("list", .ascending(\.isDone), .folded(\.title))]))
  }

  func save(_ note: Note) async throws { try await notes.put(note) }

  func finish(_ id: String) async throws { try await notes.update(id) { $0.isDone = true } }

  func follow(show: ([String]) -> Void) async throws {
    for try await list in notes.observe(\.isDone == false, sort: [.folded(\.title)]) {
      show(list.map(\.title))
    }
  }
}
