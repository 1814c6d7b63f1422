import Foundation

/// The order that a child is given: one stage of one engine.
struct ChildOrder: Codable {
  var engine: EngineName
  var stage: Stage
  /// The database's directory.
  var path: String
  var n: Int
  var valueBytes: Int
  /// A file with real records, in place of invented ones.
  var documents: String?
  /// Which run it is; no two write the same values.
  var run: Int
  /// A repository whose history is stored.
  var repository: String?

  func text() throws -> String {
    String(decoding: try JSONEncoder().encode(self), as: UTF8.self)
  }

  init(
    engine: EngineName, stage: Stage, path: String, n: Int, valueBytes: Int, documents: String?,
    run: Int, repository: String?
  ) {
    self.engine = engine
    self.stage = stage
    self.path = path
    self.n = n
    self.valueBytes = valueBytes
    self.documents = documents
    self.run = run
    self.repository = repository
  }

  init(text: String) throws {
    self = try JSONDecoder().decode(ChildOrder.self, from: Data(text.utf8))
  }
}
