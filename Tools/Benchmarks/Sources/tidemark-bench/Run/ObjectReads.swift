import Foundation
import GRDB
import Tidemark

/// Objects of 250 bytes in sections of 200 that are read one by one, in first pages and in lists,
/// beside a table of GRDB that has the same index.
struct ObjectReads {
  private static let sectionSize = 200

  let count: Int
  let directory: String

  struct Item: Codable, Identifiable, Equatable, Sendable, FetchableRecord, PersistableRecord {
    static let databaseTableName = "item"

    var id: String
    var section: String
    var size: Int
    var title: String
    var text: String

    init(_ number: Int, sections: Int) {
      id = "item-\(number)"
      section = "section-\(number % sections)"
      size = number &* 7_919 % 1_000_003
      title = "The title of item \(number)"
      text = String(repeating: "abcdefgh ", count: 15)
    }
  }

  func report(runs: Int) throws {
    let path = directory + "/tidemark-object-reads"
    try? FileManager.default.removeItem(atPath: path)
    try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
    defer { try? FileManager.default.removeItem(atPath: path) }
    let sections = max(1, count / Self.sectionSize)
    let items = (0..<count).map { Item($0, sections: sections) }
    let pool = try table(items, path)
    try write(items, path)
    let ids = items.map(\.id).shuffled()
    let few = Array(ids.prefix(max(1, count / 20)))
    var table = ReadTable()
    for _ in 0..<max(1, runs) {
      for (name, bytes, wanted) in [
        ("all of them fit", 2_048 * count, ids), ("beyond the cache", 25 * count, few),
      ] {
        let store = try Store.openBlocking(
          at: path + "/store", configuration: Store.Configuration(cacheBytes: bytes))
        let objects = try Self.collection(store)
        for id in ids {
          guard try objects.get(id) != nil else { throw BenchError("\(id) is not there") }
        }
        try table.add("object by id, \(name)", reads: wanted.count) {
          for id in wanted { _ = try objects.get(id) }
        }
        if bytes > 500 * count { try addQueries(objects, sections, &table) }
        try store.blocking.close()
      }
      try table.add("GRDB, by id", reads: few.count) {
        for id in few { _ = try pool.read { try Item.fetchOne($0, key: id) } }
      }
      try addQueries(pool, sections, &table)
    }
    table.show("Reads of \(count) objects that were read before")
    try pool.close()
  }

  private static func collection(_ store: Store) throws -> ObjectCollection<Item, String> {
    try store.collection(
      Item.self, named: "items",
      CollectionSchema(indexes: [
        ObjectIndex("section", .ascending(\.section), .descending(\.size))
      ]))
  }

  private func write(_ items: [Item], _ path: String) throws {
    let store = try Store.openBlocking(at: path + "/store")
    let objects = try Self.collection(store)
    for first in stride(from: 0, to: items.count, by: 1_000) {
      try store.blocking.write { batch in
        for item in items[first...].prefix(1_000) { try batch.put(item, in: objects) }
      }
    }
    try store.blocking.close()
  }

  private func table(_ items: [Item], _ path: String) throws -> DatabasePool {
    let pool = try DatabasePool(path: path + "/items.sqlite")
    try pool.write { database in
      try database.create(table: "item") { table in
        table.primaryKey("id", .text)
        for column in ["section", "title", "text"] { table.column(column, .text).notNull() }
        table.column("size", .integer).notNull()
      }
      try database.execute(sql: "CREATE INDEX section ON item (section, size DESC)")
      for item in items { try item.insert(database) }
    }
    return pool
  }

  private func addQueries(
    _ objects: ObjectCollection<Item, String>, _ sections: Int, _ table: inout ReadTable
  ) throws {
    try addQueries("", sections, &table) { section in
      try objects.find(\.section == section, sort: [.descending(\.size)], limit: 20).count
    } whole: { section in
      try objects.find(\.section == section).count
    }
  }

  private func addQueries(
    _ pool: DatabasePool, _ sections: Int, _ table: inout ReadTable
  ) throws {
    try addQueries("GRDB, ", sections, &table) { section in
      try pool.read {
        try Item.filter(Column("section") == section).order(Column("size").desc).limit(20)
          .fetchAll($0).count
      }
    } whole: { section in
      try pool.read { try Item.filter(Column("section") == section).fetchAll($0).count }
    }
  }

  private func addQueries(
    _ name: String, _ sections: Int, _ table: inout ReadTable,
    first: (String) throws -> Int, whole: (String) throws -> Int
  ) throws {
    let names = (0..<min(sections, 500)).map { "section-\($0)" }.shuffled()
    try table.add(name + "first 20 of a section by a compound index", reads: names.count) {
      for section in names where try first(section) != 20 { throw BenchError("too few objects") }
    }
    try table.add(name + "the 200 objects of a section", reads: names.count) {
      for section in names where try whole(section) != Self.sectionSize {
        throw BenchError("a section has another number of objects")
      }
    }
  }
}
