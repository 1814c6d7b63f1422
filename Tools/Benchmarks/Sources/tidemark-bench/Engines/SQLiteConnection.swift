import CSQLite

/// A connection, set up.
final class SQLiteConnection {
  fileprivate let handle: OpaquePointer

  init(_ options: EngineOptions) throws {
    var opened: OpaquePointer?
    let flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX
    let result = sqlite3_open_v2(options.path + "/records.sqlite", &opened, flags, nil)
    guard result == SQLITE_OK, let opened else {
      throw BenchError("SQLite did not open: \(result)")
    }
    handle = opened
    sqlite3_busy_timeout(handle, 60_000)
    try execute("PRAGMA journal_mode = WAL")
    try execute("PRAGMA synchronous = \(options.level == .durable ? "FULL" : "NORMAL")")
    try execute("PRAGMA cache_size = -\(max(64, options.cacheBytes >> 10))")
  }

  func execute(_ text: String) throws {
    let result = sqlite3_exec(handle, text, nil, nil, nil)
    guard result == SQLITE_OK else { throw failure(text) }
  }

  fileprivate func failure(_ text: String) -> BenchError {
    BenchError("SQLite: \(String(cString: sqlite3_errmsg(handle))) in \(text)")
  }

  func close() { sqlite3_close_v2(handle) }
}

/// A prepared statement.
final class SQLiteStatement {
  private let connection: SQLiteConnection
  private let text: String
  private let handle: OpaquePointer

  init(_ connection: SQLiteConnection, _ text: String) throws {
    self.connection = connection
    self.text = text
    var made: OpaquePointer?
    let result = sqlite3_prepare_v3(
      connection.handle, text, -1, UInt32(SQLITE_PREPARE_PERSISTENT), &made, nil)
    guard result == SQLITE_OK, let made else { throw connection.failure(text) }
    handle = made
  }

  /// Binds bytes, which have to stay until the statement is reset.
  func bind(_ place: Int32, _ bytes: UnsafeRawBufferPointer) {
    sqlite3_bind_blob(handle, place, bytes.baseAddress, Int32(bytes.count), nil)
  }

  func bind(_ place: Int32, _ number: Int) { sqlite3_bind_int64(handle, place, Int64(number)) }

  /// - Returns: whether there is a row.
  func step() throws -> Bool {
    switch sqlite3_step(handle) {
    case SQLITE_ROW: return true
    case SQLITE_DONE: return false
    default: throw connection.failure(text)
    }
  }

  func run() throws {
    _ = try step()
    reset()
  }

  func column(_ place: Int32) -> UnsafeRawBufferPointer {
    UnsafeRawBufferPointer(
      start: sqlite3_column_blob(handle, place), count: Int(sqlite3_column_bytes(handle, place)))
  }

  func reset() { sqlite3_reset(handle) }

  func finish() { sqlite3_finalize(handle) }
}
