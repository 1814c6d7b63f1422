import Foundation
import SwiftUI
import Tidemark
import TidemarkFoundation
import TidemarkHTTP
import TidemarkSwiftUI
import TidemarkSync

/// Notes in a store, which a server replicates when there is one: `Tools/server` starts one.
@main
struct NotesApp: App {
  private let opened = Result { try Notebook() }

  var body: some Scene {
    WindowGroup {
      switch opened {
      case .success(let notebook):
        NoteScreen().store(notebook.store, replicator: notebook.replicator)
      case .failure(let error):
        ContentUnavailableView(
          "The notes cannot be opened", systemImage: "exclamationmark.triangle",
          description: Text(String(describing: error)))
      }
    }
    .suspendsStore(try? opened.get().store) { print("suspending the store: \($0)") }
  }
}

/// The store and its replicator.
struct Notebook {
  let store: Store
  let replicator: Replicator

  init() throws {
    let folder = try FileManager.default.url(
      for: .applicationSupportDirectory, in: .userDomainMask, appropriateFor: nil, create: true)
    // Opening takes some milliseconds, so that the first frame can have the notes.
    store = try Store.openBlocking(at: folder.appending(path: "notes.tidemark").path)
    replicator = try store.replicator(
      named: "home", peer: try HTTPPeer("http://127.0.0.1:8080/notes"), resolver: .mergeFields())
    replicator.start()
  }
}
