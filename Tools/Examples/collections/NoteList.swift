public import Tidemark

/// A list of notes in a terminal: one line in, what to show out.
///
/// ```
/// add Buy milk      done 1      list      undo 1      find milk
/// ```
public struct NoteList: Sendable {
  /// A note.
  public struct Note: Codable, Sendable, Identifiable, Equatable {
    public var id: Int
    public var text: String
    public var isDone = false
  }

  let notes: ObjectCollection<Note, Int>

  public init(_ store: Store) throws {
    notes = try store.collection(
      Note.self, named: "notes",
      CollectionSchema(indexes: [
        ObjectIndex("list", .ascending(\.isDone), .ascending(\.id)),
        ObjectIndex("id", \.id), ObjectIndex(text: "text", \.text),
      ]))
  }

  /// Carries a line out.
  public func run(_ line: String) async throws -> [String] {
    let words = line.split(separator: " ", maxSplits: 1).map(String.init)
    let rest = words.count > 1 ? words[1] : ""
    switch words.first {
    case "add":
      let note = Note(id: (try notes.max(\.id) ?? 0) + 1, text: rest)
      try await notes.insert(note)
      return [Self.line(note)]
    case "done":
      guard let id = Int(rest), let note = try await notes.update(id, { $0.isDone = true }) else {
        return ["no such note"]
      }
      return [Self.line(note)]
    case "undo":
      guard let id = Int(rest) else { return ["no such note"] }
      return [try await notes.undo(id).map(Self.line) ?? "gone"]
    case "list":
      return try notes.find(sort: [.ascending(\.isDone), .ascending(\.id)]).map(Self.line)
    case "find": return try notes.search("text", TextQuery(rest)).map { Self.line($0.object) }
    default: return ["add TEXT, done ID, undo ID, list, find WORDS"]
    }
  }

  /// The list as it changes, for a screen.
  public var screens: Observed<ObjectList<Note, Int>> {
    notes.observe(sort: [.ascending(\.isDone), .ascending(\.id)])
  }

  private static func line(_ note: Note) -> String {
    "\(note.id) [\(note.isDone ? "x" : " ")] \(note.text)"
  }
}
