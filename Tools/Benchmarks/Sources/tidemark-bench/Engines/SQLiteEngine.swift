import CSQLite
import Foundation

/// SQLite by its C interface: prepared statements over one table, a write-ahead log.
final class SQLiteEngine: BenchEngine, @unchecked Sendable {
  private let options: EngineOptions
  private let connection: SQLiteConnection
  /// One connection writes at a time in any case.
  private let lock = NSLock()
  private let insert: SQLiteStatement
  private let update: SQLiteStatement
  private let remove: SQLiteStatement

  init(_ options: EngineOptions) throws {
    guard options.level != .async else { throw BenchError("SQLite writes every commit to its log") }
    self.options = options
    try FileManager.default.createDirectory(
      atPath: options.path, withIntermediateDirectories: true)
    connection = try SQLiteConnection(options)
    let label = options.labels == nil ? "" : ", label BLOB NOT NULL"
    try connection.execute(
      "CREATE TABLE IF NOT EXISTS records(key BLOB PRIMARY KEY NOT NULL\(label), "
        + "value BLOB NOT NULL)\(Self.isClustered(options) ? " WITHOUT ROWID" : "")")
    if options.labels != nil {
      try connection.execute("CREATE INDEX IF NOT EXISTS labels ON records(label, key)")
      insert = try SQLiteStatement(
        connection, "INSERT INTO records(key, value, label) VALUES(?1, ?2, ?3)")
    } else {
      insert = try SQLiteStatement(connection, "INSERT INTO records(key, value) VALUES(?1, ?2)")
    }
    update = try SQLiteStatement(connection, Self.updateText(options))
    remove = try SQLiteStatement(connection, "DELETE FROM records WHERE key = ?1")
  }

  /// Its documentation advises tables without row numbers for rows up to a twentieth of a page.
  static func isClustered(_ options: EngineOptions) -> Bool { options.values.mean <= 400 }

  private static func updateText(_ options: EngineOptions) -> String {
    // Labels stay what they are.
    options.labels == nil
      ? "INSERT INTO records(key, value) VALUES(?1, ?2) "
        + "ON CONFLICT(key) DO UPDATE SET value = excluded.value"
      : "UPDATE records SET value = ?2 WHERE key = ?1"
  }

  var settings: [String] {
    [
      "SQLite \(String(cString: sqlite3_libversion()))", "journal_mode WAL",
      "synchronous \(options.level == .durable ? "FULL" : "NORMAL")",
      "cache_size \(options.cacheBytes >> 20) MiB", "page_size 4096",
      Self.isClustered(options) ? "WITHOUT ROWID" : "with row numbers",
      "prepared statements, a connection for each reader", "labels as a column with an index",
    ]
  }

  func load(_ records: Records, _ range: Range<Int>) throws {
    try lock.withLock {
      try connection.execute("BEGIN IMMEDIATE")
      for place in range {
        insert.bind(1, records.key(place))
        insert.bind(2, records.value(place))
        if let labels = options.labels {
          try labels.texts[labels.number(records.indices[place])].withUnsafeBytes { text in
            insert.bind(3, text)
            try insert.run()
          }
        } else {
          try insert.run()
        }
      }
      try connection.execute("COMMIT")
    }
  }

  func put(_ key: UnsafeRawBufferPointer, _ value: UnsafeRawBufferPointer, _ index: UInt32) throws {
    try lock.withLock {
      update.bind(1, key)
      update.bind(2, value)
      try update.run()
    }
  }

  func delete(_ records: Records, _ range: Range<Int>) throws {
    try lock.withLock {
      try connection.execute("BEGIN IMMEDIATE")
      for place in range {
        remove.bind(1, records.key(place))
        try remove.run()
      }
      try connection.execute("COMMIT")
    }
  }

  func flush() throws { try connection.execute("PRAGMA wal_checkpoint(FULL)") }

  func reader() throws -> any BenchReader {
    try SQLiteReader(SQLiteConnection(options), options.labels)
  }

  func compact(dense: Bool) throws {
    try connection.execute("VACUUM")
    try connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
  }

  func close() throws {
    for statement in [insert, update, remove] { statement.finish() }
    connection.close()
  }
}

private final class SQLiteReader: BenchReader {
  private let connection: SQLiteConnection
  private let one: SQLiteStatement
  private let range: SQLiteStatement
  private let labelled: SQLiteStatement?
  private let labelledKeys: SQLiteStatement?
  private let labels: Labels?

  init(_ connection: SQLiteConnection, _ labels: Labels?) throws {
    self.connection = connection
    self.labels = labels
    one = try SQLiteStatement(connection, "SELECT value FROM records WHERE key = ?1")
    range = try SQLiteStatement(
      connection, "SELECT key, value FROM records WHERE key >= ?1 ORDER BY key LIMIT ?2")
    if labels == nil {
      labelled = nil
      labelledKeys = nil
    } else {
      labelled = try SQLiteStatement(
        connection, "SELECT key, value FROM records WHERE label = ?1 ORDER BY key")
      labelledKeys = try SQLiteStatement(
        connection, "SELECT key FROM records WHERE label = ?1 ORDER BY key")
    }
  }

  func close() {
    for statement in [one, range, labelled, labelledKeys] { statement?.finish() }
    connection.close()
  }

  func get(_ key: UnsafeRawBufferPointer, _ check: inout Check) throws {
    one.bind(1, key)
    if try one.step() {
      let value = one.column(0)
      if let start = key.baseAddress { check.see(start, value.baseAddress, value.count) }
    }
    one.reset()
  }

  private func rows(_ statement: SQLiteStatement, _ check: inout Check) throws {
    while try statement.step() {
      let key = statement.column(0)
      let value = statement.column(1)
      if let start = key.baseAddress { check.see(start, value.baseAddress, value.count) }
    }
    statement.reset()
  }

  func scan(from key: UnsafeRawBufferPointer, count: Int, _ check: inout Check) throws {
    range.bind(1, key)
    range.bind(2, count)
    try rows(range, &check)
  }

  func documents(label: Int, _ check: inout Check) throws {
    guard let labels, let labelled else { return }
    try labels.texts[label].withUnsafeBytes { text in
      labelled.bind(1, text)
      try rows(labelled, &check)
    }
  }

  func keys(label: Int, _ check: inout Check) throws {
    guard let labels, let labelledKeys else { return }
    try labels.texts[label].withUnsafeBytes { text in
      labelledKeys.bind(1, text)
      while try labelledKeys.step() {
        let key = labelledKeys.column(0)
        if let start = key.baseAddress { check.see(start, key.count) }
      }
      labelledKeys.reset()
    }
  }
}
