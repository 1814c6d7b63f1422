import GRDB

nonisolated struct Note: Codable, Identifiable, Sendable, FetchableRecord, PersistableRecord {
  var id: String
  var title: String
  var isDone = false

  enum Columns {
    static let title = Column(CodingKeys.title)
    static let isDone = Column(CodingKeys.isDone)
  }
}

struct NotesScreen {
  let pool: DatabasePool

  init(at path: String) throws {
    pool = try DatabasePool(path: path)
    var migrator = DatabaseMigrator()
    migrator.registerMigration("notes") { db in
      try db.create(table: "note") { t in
        t.primaryKey("id", .text)
        t.column("title", .text).notNull().collate(.localizedCaseInsensitiveCompare)
        t.column("isDone", .boolean).notNull()
      }
      try db.create(index: "list", on: "note", columns: ["isDone", "title"])
    }
    try migrator.migrate(pool)
  }

  func save(_ note: Note) async throws { try await pool.write { try note.save($0) } }

  func finish(_ id: String) async throws {
    _ = try await pool.write { db in
      try Note.filter(id: id).updateAll(db) { $0.isDone.set(to: true) }
    }
  }

  func follow(show: ([String]) -> Void) async throws {
    let observation = ValueObservation.tracking { db in
      try Note.filter { !$0.isDone }.order(\.title).fetchAll(db)
    }
    for try await list in observation.values(in: pool) { show(list.map(\.title)) }
  }
}
