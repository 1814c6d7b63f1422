import Foundation
import GRDB

/// GRDB as a Swift program uses it: a Codable record, a pool over a database in WAL mode.
final class GRDBEngine: BenchEngine, @unchecked Sendable {
  /// A document as a row.
  struct Document: Codable, FetchableRecord, PersistableRecord {
    static let databaseTableName = "document"
    static let persistenceConflictPolicy = PersistenceConflictPolicy(
      insert: .replace, update: .replace)

    var key: String
    var label: String?
    var value: Data
  }

  private let options: EngineOptions
  private let pool: DatabasePool

  init(_ options: EngineOptions) throws {
    guard options.level != .async else { throw BenchError("GRDB writes every commit to its log") }
    self.options = options
    try FileManager.default.createDirectory(
      atPath: options.path, withIntermediateDirectories: true)
    var configuration = Configuration()
    let cacheKilobytes = max(64, options.cacheBytes >> 10)
    configuration.prepareDatabase { database in
      try database.execute(sql: "PRAGMA cache_size = -\(cacheKilobytes)")
    }
    pool = try DatabasePool(
      path: options.path + "/documents.sqlite", configuration: configuration)
    if options.level == .durable {
      // The pool itself has chosen NORMAL.
      try pool.writeWithoutTransaction { database in
        try database.execute(sql: "PRAGMA synchronous = FULL")
      }
    }
    try pool.write { database in
      try database.create(table: Document.databaseTableName, options: .ifNotExists) { table in
        table.primaryKey("key", .text)
        table.column("label", .text)
        table.column("value", .blob).notNull()
      }
      if options.labels != nil {
        try database.create(
          indexOn: Document.databaseTableName, columns: ["label"], options: .ifNotExists)
      }
    }
  }

  var settings: [String] {
    [
      "GRDB 7, DatabasePool (WAL)",
      "synchronous \(options.level == .durable ? "FULL" : "NORMAL")",
      "cache_size \(options.cacheBytes >> 20) MiB", "Codable record of key, label and Data",
    ]
  }

  private func document(
    _ key: UnsafeRawBufferPointer, _ value: UnsafeRawBufferPointer, _ index: UInt32
  ) -> Document {
    Document(
      key: String(decoding: key, as: UTF8.self),
      label: options.labels.map { String(decoding: $0.texts[$0.number(index)], as: UTF8.self) },
      value: Data(value))
  }

  func load(_ records: Records, _ range: Range<Int>) throws {
    try pool.write { database in
      for place in range {
        try document(records.key(place), records.value(place), records.indices[place])
          .insert(database)
      }
    }
  }

  func put(_ key: UnsafeRawBufferPointer, _ value: UnsafeRawBufferPointer, _ index: UInt32) throws {
    let document = document(key, value, index)
    try pool.write { database in try document.upsert(database) }
  }

  func delete(_ records: Records, _ range: Range<Int>) throws {
    try pool.write { database in
      for place in range {
        _ = try Document.deleteOne(
          database, key: String(decoding: records.key(place), as: UTF8.self))
      }
    }
  }

  func flush() throws {
    _ = try pool.writeWithoutTransaction { database in try database.checkpoint(.full) }
  }

  func reader() throws -> any BenchReader { GRDBReader(pool, options.labels) }

  func compact(dense: Bool) throws {
    try pool.vacuum()
    _ = try pool.writeWithoutTransaction { database in try database.checkpoint(.truncate) }
  }

  func close() throws { try pool.close() }
}

private final class GRDBReader: BenchReader {
  private let pool: DatabasePool
  private let labels: [String]

  init(_ pool: DatabasePool, _ labels: Labels?) {
    self.pool = pool
    self.labels = labels?.texts.map { String(decoding: $0, as: UTF8.self) } ?? []
  }

  func close() {}

  private func see(_ document: GRDBEngine.Document, _ check: inout Check) {
    var key = document.key
    key.withUTF8 { key in
      document.value.withUnsafeBytes { value in
        if let start = key.baseAddress { check.see(start, value.baseAddress, value.count) }
      }
    }
  }

  func get(_ key: UnsafeRawBufferPointer, _ check: inout Check) throws {
    let key = String(decoding: key, as: UTF8.self)
    let document = try pool.read { database in
      try GRDBEngine.Document.fetchOne(database, key: key)
    }
    if let document { see(document, &check) }
  }

  func scan(from key: UnsafeRawBufferPointer, count: Int, _ check: inout Check) throws {
    let key = String(decoding: key, as: UTF8.self)
    var seen = check
    try pool.read { database in
      let rows = try GRDBEngine.Document.filter(Column("key") >= key).order(Column("key"))
        .limit(count).fetchCursor(database)
      while let document = try rows.next() { see(document, &seen) }
    }
    check = seen
  }

  func documents(label: Int, _ check: inout Check) throws {
    let label = labels[label]
    var seen = check
    try pool.read { database in
      let rows = try GRDBEngine.Document.filter(Column("label") == label).order(Column("key"))
        .fetchCursor(database)
      while let document = try rows.next() { see(document, &seen) }
    }
    check = seen
  }

  func keys(label: Int, _ check: inout Check) throws {
    let label = labels[label]
    var seen = check
    try pool.read { database in
      let rows = try GRDBEngine.Document.filter(Column("label") == label).order(Column("key"))
        .select(Column("key"), as: String.self).fetchCursor(database)
      while var key = try rows.next() {
        key.withUTF8 { key in if let start = key.baseAddress { seen.see(start, key.count) } }
      }
    }
    check = seen
  }
}
