import SwiftUI
import Tidemark
import TidemarkSwiftUI
import TidemarkSync

/// All notes, or those that a search finds.
struct NoteScreen: View {
  @LiveQuery(sort: [.ascending(\.isDone), .ascending(\.created)])
  var notes: ObjectList<Note, String>
  @LiveSearch("text") var found: [Note]
  @LiveCount<Note>(\.isDone == false) var open
  @State private var draft = ""
  @State private var showsDone = true
  @State private var failure: String?

  var body: some View {
    NavigationStack {
      List {
        if $found.query.text.isEmpty {
          TextField("New note", text: $draft).onSubmit(add)
          Toggle("Show done", isOn: $showsDone)
          ForEach($notes.rows, content: row)
        } else {
          ForEach($found.rows, content: row)
        }
        if let problem { Text(problem) }
      }
      .navigationTitle("\(open) notes to do")
      .searchable(text: $found.binding(\.query.text))
      .animation(.default, value: notes.ids)
      .onChange(of: showsDone) {
        $notes.condition = showsDone ? .everything : \.isDone == false
      }
    }
  }

  private func row(_ note: LiveRow<Note>) -> some View {
    NavigationLink {
      NoteEditor(id: note.id)
    } label: {
      HStack {
        Text(note.text).strikethrough(note.isDone)
        Spacer()
        Image(systemName: symbol(note.syncState))
      }
    }
    .swipeActions(edge: .leading) {
      Button(note.isDone ? "To do" : "Done") {
        attempt { try await $0.update(note.id) { $0.isDone.toggle() } }
      }
      Button("Undo") { attempt { try await $0.undo(note.id) } }
    }
    .swipeActions {
      Button("Delete", role: .destructive) { attempt { try await $0.delete(note.id) } }
    }
  }

  /// Why the screen lacks something, or why the last write failed.
  private var problem: String? {
    if let failure { return failure }
    if let error = $notes.error ?? $found.error { return String(describing: error) }
    let count = $notes.unreadable.count
    return count == 0 ? nil : "\(count) notes need a newer version of this app"
  }

  private func symbol(_ state: KeyState?) -> String {
    switch state {
    case .synced: "checkmark.icloud"
    case .waiting: "arrow.up.circle"
    case .local, nil: "iphone"
    @unknown default: "questionmark.circle"
    }
  }

  private func add() {
    let note = Note(text: draft)
    draft = ""
    attempt { try await $0.insert(note) }
  }

  private func attempt(
    _ write: @escaping @MainActor (ObjectCollection<Note, String>) async throws -> Void
  ) {
    Task {
      do {
        try await write($notes.collection)
        failure = nil
      } catch { failure = String(describing: error) }
    }
  }
}

/// One note, which may change or go while it is edited.
struct NoteEditor: View {
  @LiveObject var note: Note?
  @State private var text: String?
  @State private var failure: String?

  init(id: String) { _note = LiveObject(id) }

  var body: some View {
    Form {
      if let note {
        TextField("Text", text: Binding(get: { text ?? note.text }, set: { text = $0 }))
          .onSubmit(save)
        if text != nil { Button("Save") { save() } }
        Button("Undo the last change") { attempt { try await $0.undo(note.id) } }
      } else {
        Text("This note is gone.")
      }
      if let error = failure ?? $note.unreadable.first?.message { Text(error) }
    }
    .navigationTitle("Note")
  }

  private func save() {
    guard let text else { return }
    attempt { try await $0.update($note.id) { $0.text = text } }
  }

  private func attempt(
    _ write: @escaping @MainActor (ObjectCollection<Note, String>) async throws -> Void
  ) {
    Task {
      do {
        try await write($note.collection)
        (text, failure) = (nil, nil)
      } catch { failure = String(describing: error) }
    }
  }
}
