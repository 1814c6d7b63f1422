import CLMDB

/// Reads for one thread, in a transaction that is renewed for every call.
final class LMDBReader: BenchReader {
  private let transaction: OpaquePointer
  private let records: MDB_dbi
  private let table: MDB_dbi
  private let labels: Labels?

  init(
    _ environment: OpaquePointer, _ records: MDB_dbi, _ table: MDB_dbi, _ labels: Labels?
  ) throws {
    var begun: OpaquePointer?
    try LMDBEngine.check(mdb_txn_begin(environment, nil, UInt32(MDB_RDONLY), &begun))
    guard let begun else { throw BenchError("LMDB has no transaction") }
    transaction = begun
    mdb_txn_reset(transaction)
    self.records = records
    self.table = table
    self.labels = labels
  }

  func close() { mdb_txn_abort(transaction) }

  func get(_ key: UnsafeRawBufferPointer, _ check: inout Check) throws {
    try LMDBEngine.check(mdb_txn_renew(transaction))
    defer { mdb_txn_reset(transaction) }
    try fetch(key, &check)
  }

  private func fetch(_ key: UnsafeRawBufferPointer, _ check: inout Check) throws {
    var wanted = LMDBEngine.value(key)
    var value = MDB_val()
    try LMDBEngine.check(mdb_get(transaction, records, &wanted, &value))
    if let start = key.baseAddress { check.see(start, value.mv_data, value.mv_size) }
  }

  private func walk(_ table: MDB_dbi, _ body: (OpaquePointer) throws -> Void) throws {
    try LMDBEngine.check(mdb_txn_renew(transaction))
    defer { mdb_txn_reset(transaction) }
    var opened: OpaquePointer?
    try LMDBEngine.check(mdb_cursor_open(transaction, table, &opened))
    guard let cursor = opened else { return }
    defer { mdb_cursor_close(cursor) }
    try body(cursor)
  }

  func scan(from key: UnsafeRawBufferPointer, count: Int, _ check: inout Check) throws {
    try walk(records) { cursor in
      var key = LMDBEngine.value(key)
      var value = MDB_val()
      var result = mdb_cursor_get(cursor, &key, &value, MDB_SET_RANGE)
      var left = count
      while result == 0, left > 0 {
        if let start = key.mv_data { check.see(start, value.mv_data, value.mv_size) }
        left -= 1
        if left > 0 { result = mdb_cursor_get(cursor, &key, &value, MDB_NEXT) }
      }
      if result != MDB_NOTFOUND { try LMDBEngine.check(result) }
    }
  }

  private func forEachKey(
    _ number: Int, _ body: (UnsafeRawBufferPointer) throws -> Void
  ) throws {
    guard let labels else { return }
    try walk(table) { cursor in
      try labels.texts[number].withUnsafeBytes { text in
        var label = LMDBEngine.value(text)
        var key = MDB_val()
        var result = mdb_cursor_get(cursor, &label, &key, MDB_SET_KEY)
        while result == 0 {
          try body(UnsafeRawBufferPointer(start: key.mv_data, count: key.mv_size))
          result = mdb_cursor_get(cursor, &label, &key, MDB_NEXT_DUP)
        }
        if result != MDB_NOTFOUND { try LMDBEngine.check(result) }
      }
    }
  }

  func documents(label: Int, _ check: inout Check) throws {
    try forEachKey(label) { key in try fetch(key, &check) }
  }

  func keys(label: Int, _ check: inout Check) throws {
    try forEachKey(label) { key in
      if let start = key.baseAddress { check.see(start, key.count) }
    }
  }
}
