import SwiftUI
import Tidemark
import TidemarkSwiftUI

/// Notes in memory.
struct SampleNotes: StorePreview {
  static func fill(_ store: Store) async throws {
    let notes = try Note.collection(in: store)
    try await notes.put(Note(text: "Buy milk"))
    try await notes.put(Note(text: "Water the plants", isDone: true))
  }
}

// Xcode's previews are built with DEBUG; check-apple has no macros of Apple's.
#if DEBUG
  #Preview(traits: .modifier(SampleNotes())) { NoteScreen() }
#endif
