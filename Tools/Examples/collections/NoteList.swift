public import Foundation
public import Tidemark
import TidemarkFoundation

/// A list of notes in a terminal: one line in, what to show out. Notes go by the beginning of their
/// ids.
///
/// ```
/// add Buy milk    done 3f2a    edit 3f2a Buy tea    delete 3f2a    undo 3f2a    find milk    list
/// ```
public struct NoteList: Sendable {
  /// A note.
  public struct Note: Codable, Sendable, Identifiable, Equatable {
    /// Made by chance, so that no two devices make the same one.
    public var id = UUID().uuidString.lowercased()
    public var text: String
    public var isDone = false
    public var created = Date.now
  }

  public let notes: ObjectCollection<Note, String>

  public init(_ store: Store) throws {
    notes = try store.collection(
      Note.self, named: "notes",
      CollectionSchema(indexes: [
        ObjectIndex("list", .ascending(\.isDone), .ascending(\.created)),
        ObjectIndex("id", \.id), ObjectIndex(text: "text", \.text),
      ]))
  }

  /// Carries a line out.
  public func run(_ line: String) async throws -> [String] {
    let (command, rest) = Self.split(line)
    let (name, text) = Self.split(rest)
    switch command {
    case "list": return try notes.find(sort: Self.order).map { Self.line($0) }
    case "find": return try notes.search("text", TextQuery(rest)).map { Self.line($0.object) }
    case "add" where !rest.isEmpty:
      let note = Note(text: rest)
      try await notes.insert(note)
      return [Self.line(note)]
    case "done", "edit", "delete", "undo":
      var ids = try name.isEmpty ? [] : notes.ids(where: .hasPrefix(\.id, name.lowercased()))
      // Deleted notes are in no index, and still have a past.
      if command == "undo", ids.isEmpty, try !notes.history(of: name).isEmpty { ids = [name] }
      guard ids.count < 2 else { return ["several notes begin so:"] + ids.sorted() }
      guard let id = ids.first else { return ["no such note"] }
      return try await change(id, command, text)
    default:
      return ["add TEXT, done ID, edit ID TEXT, delete ID, undo ID, find WORDS, list"]
    }
  }

  private func change(_ id: String, _ command: String, _ text: String) async throws -> [String] {
    switch command {
    case "delete":
      try await notes.delete(id)
      return ["deleted; undo \(id) brings it back"]
    case "undo": return [try await notes.undo(id).map { Self.line($0) } ?? "gone"]
    case "edit" where text.isEmpty: return ["edit ID TEXT"]
    default:
      let note = try await notes.update(id) { note in
        if command == "done" { note.isDone = true } else { note.text = text }
      }
      return [note.map { Self.line($0) } ?? "no such note"]
    }
  }

  /// The list as it changes, for a screen.
  public var screens: LiveValues<ObjectList<Note, String>> { notes.observe(sort: Self.order) }

  /// A note as a line, with a mark behind it.
  public static func line(_ note: Note, mark: String = "") -> String {
    "\(note.id.prefix(4)) [\(note.isDone ? "x" : " ")] \(note.text)"
      + (mark.isEmpty ? "" : "  (\(mark))")
  }

  private static var order: [ObjectOrder<Note>] { [.ascending(\.isDone), .ascending(\.created)] }

  private static func split(_ line: String) -> (String, String) {
    let words = line.split(separator: " ", maxSplits: 1).map(String.init)
    return (words.first ?? "", words.count > 1 ? words[1] : "")
  }
}
