import Foundation
import Tidemark
import TidemarkFoundation
import TidemarkSwiftUI

/// A note, with the collection that views find it in.
nonisolated struct Note: Codable, CollectionObject {
  var id = UUID().uuidString.lowercased()
  var text: String
  var isDone = false
  var created = Date.now

  static func collection(in store: Store) throws -> ObjectCollection<Note, String> {
    try store.collection(
      named: "notes",
      CollectionSchema(indexes: [
        ObjectIndex("list", .ascending(\.isDone), .ascending(\.created)),
        ObjectIndex(text: "text", \.text),
      ]))
  }
}
