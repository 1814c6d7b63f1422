import CLMDB
import Foundation

/// LMDB 0.9: a memory-mapped B+ tree.
final class LMDBEngine: BenchEngine, @unchecked Sendable {
  private let options: EngineOptions
  /// Replaced by compaction, while nobody else runs.
  private var environment: OpaquePointer
  private var records: MDB_dbi = 0
  private var labels: MDB_dbi = 0

  init(_ options: EngineOptions) throws {
    self.options = options
    environment = try Self.open(options)
    try openTables()
  }

  private static func open(_ options: EngineOptions) throws -> OpaquePointer {
    try FileManager.default.createDirectory(
      atPath: options.path, withIntermediateDirectories: true)
    var made: OpaquePointer?
    try check(mdb_env_create(&made))
    guard let environment = made else { throw BenchError("LMDB has no environment") }
    try check(mdb_env_set_mapsize(environment, mapBytes(options)))
    try check(mdb_env_set_maxdbs(environment, 2))
    try check(mdb_env_set_maxreaders(environment, 126))
    try check(mdb_env_open(environment, options.path, flags(options.level), 0o644))
    return environment
  }

  private static func mapBytes(_ options: EngineOptions) -> Int { options.rawBytes * 4 + (1 << 30) }

  private static func flags(_ level: PutLevel) -> UInt32 {
    let shared = UInt32(MDB_NOTLS)
    return switch level {
    case .async: shared | UInt32(MDB_WRITEMAP) | UInt32(MDB_MAPASYNC)
    case .buffered: shared | UInt32(MDB_NOSYNC)
    case .durable: shared
    }
  }

  private func openTables() throws {
    try write { transaction in
      try Self.check(mdb_dbi_open(transaction, "records", UInt32(MDB_CREATE), &records))
      if options.labels != nil {
        let flags = UInt32(MDB_CREATE) | UInt32(MDB_DUPSORT) | UInt32(MDB_DUPFIXED)
        try Self.check(mdb_dbi_open(transaction, "labels", flags, &labels))
      }
    }
  }

  static func check(_ result: Int32) throws {
    guard result == 0 else { throw BenchError("LMDB: \(String(cString: mdb_strerror(result)))") }
  }

  var settings: [String] {
    let sync =
      switch options.level {
      case .async: "MDB_WRITEMAP | MDB_MAPASYNC"
      case .buffered: "MDB_NOSYNC"
      case .durable: "synchronous"
      }
    return [
      String(cString: mdb_version(nil, nil, nil)), sync, "MDB_NOTLS",
      "map of \(Self.mapBytes(options) >> 20) MiB", "readers renew one transaction for every call",
      "labels in a table with MDB_DUPSORT | MDB_DUPFIXED",
    ]
  }

  private func write(_ body: (OpaquePointer) throws -> Void) throws {
    var begun: OpaquePointer?
    try Self.check(mdb_txn_begin(environment, nil, 0, &begun))
    guard let transaction = begun else { throw BenchError("LMDB has no transaction") }
    do {
      try body(transaction)
    } catch {
      mdb_txn_abort(transaction)
      throw error
    }
    try Self.check(mdb_txn_commit(transaction))
  }

  static func value(_ bytes: UnsafeRawBufferPointer) -> MDB_val {
    MDB_val(
      mv_size: bytes.count, mv_data: UnsafeMutableRawPointer(mutating: bytes.baseAddress))
  }

  private func put(
    _ transaction: OpaquePointer, _ table: MDB_dbi, _ key: UnsafeRawBufferPointer,
    _ value: UnsafeRawBufferPointer
  ) throws {
    var key = Self.value(key)
    var value = Self.value(value)
    try Self.check(mdb_put(transaction, table, &key, &value, 0))
  }

  func load(_ records: Records, _ range: Range<Int>) throws {
    try write { transaction in
      for place in range {
        try put(transaction, self.records, records.key(place), records.value(place))
        guard let labels = options.labels else { continue }
        try labels.texts[labels.number(records.indices[place])].withUnsafeBytes { label in
          try put(transaction, self.labels, label, records.key(place))
        }
      }
    }
  }

  func put(_ key: UnsafeRawBufferPointer, _ value: UnsafeRawBufferPointer, _ index: UInt32) throws {
    try write { transaction in try put(transaction, records, key, value) }
  }

  func delete(_ records: Records, _ range: Range<Int>) throws {
    try write { transaction in
      for place in range {
        var key = Self.value(records.key(place))
        try Self.check(mdb_del(transaction, self.records, &key, nil))
        guard let labels = options.labels else { continue }
        try labels.texts[labels.number(records.indices[place])].withUnsafeBytes { label in
          var label = Self.value(label)
          try Self.check(mdb_del(transaction, self.labels, &label, &key))
        }
      }
    }
  }

  func flush() throws { try Self.check(mdb_env_sync(environment, 1)) }

  func reader() throws -> any BenchReader {
    try LMDBReader(environment, records, labels, options.labels)
  }

  /// Copies without free pages, and takes the copy's place: the way that its documentation names.
  func compact(dense: Bool) throws {
    let copy = options.path + "/compact"
    try FileManager.default.createDirectory(atPath: copy, withIntermediateDirectories: true)
    try Self.check(mdb_env_copy2(environment, copy, UInt32(MDB_CP_COMPACT)))
    mdb_env_close(environment)
    guard Foundation.rename(copy + "/data.mdb", options.path + "/data.mdb") == 0 else {
      throw BenchError("LMDB's copy cannot be moved")
    }
    try FileManager.default.removeItem(atPath: copy)
    environment = try Self.open(options)
    try openTables()
  }

  func close() throws {
    try flush()
    mdb_env_close(environment)
  }
}
