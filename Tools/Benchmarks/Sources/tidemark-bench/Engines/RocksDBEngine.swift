import CRocksDB
import Foundation

/// RocksDB by its C interface: a log-structured merge tree.
final class RocksDBEngine: BenchEngine, @unchecked Sendable {
  private let options: EngineOptions
  private let tuning: RocksDBTuning
  private let database: OpaquePointer
  private let batch: OpaquePointer
  private let writing: OpaquePointer
  private let labelKeys: LabelKeys?

  init(_ options: EngineOptions, _ tuning: RocksDBTuning) throws {
    self.options = options
    self.tuning = tuning
    let configuration = tuning.configuration(options)
    defer { rocksdb_options_destroy(configuration) }
    var error: UnsafeMutablePointer<CChar>?
    let opened = rocksdb_open(configuration, options.path, &error)
    try Self.check(error)
    guard let opened else { throw BenchError("RocksDB did not open") }
    database = opened
    batch = rocksdb_writebatch_create()
    writing = rocksdb_writeoptions_create()
    rocksdb_writeoptions_set_sync(writing, options.level == .durable ? 1 : 0)
    labelKeys = options.labels.map { LabelKeys($0) }
  }

  fileprivate static func check(_ error: UnsafeMutablePointer<CChar>?) throws {
    guard let error else { return }
    defer { rocksdb_free(error) }
    throw BenchError("RocksDB: \(String(cString: error))")
  }

  var settings: [String] { tuning.settings(options) }

  func load(_ records: Records, _ range: Range<Int>) throws {
    rocksdb_writebatch_clear(batch)
    for place in range {
      let key = records.key(place)
      let value = records.value(place)
      rocksdb_writebatch_put(batch, key.characters, key.count, value.characters, value.count)
      guard let labelKeys else { continue }
      let label = labelKeys.key(records.indices[place], key)
      rocksdb_writebatch_put(batch, label.characters, label.count, label.characters, 0)
    }
    try write()
  }

  private func write() throws {
    var error: UnsafeMutablePointer<CChar>?
    rocksdb_write(database, writing, batch, &error)
    try Self.check(error)
  }

  func put(_ key: UnsafeRawBufferPointer, _ value: UnsafeRawBufferPointer, _ index: UInt32) throws {
    var error: UnsafeMutablePointer<CChar>?
    rocksdb_put(
      database, writing, key.characters, key.count, value.characters, value.count, &error)
    try Self.check(error)
  }

  func delete(_ records: Records, _ range: Range<Int>) throws {
    rocksdb_writebatch_clear(batch)
    for place in range {
      let key = records.key(place)
      rocksdb_writebatch_delete(batch, key.characters, key.count)
      guard let labelKeys else { continue }
      let label = labelKeys.key(records.indices[place], key)
      rocksdb_writebatch_delete(batch, label.characters, label.count)
    }
    try write()
  }

  func flush() throws {
    var error: UnsafeMutablePointer<CChar>?
    rocksdb_flush_wal(database, 1, &error)
    try Self.check(error)
  }

  func compact(dense: Bool) throws {
    guard let how = rocksdb_compactoptions_create() else { return }
    defer { rocksdb_compactoptions_destroy(how) }
    // `kForceOptimized`: files at the bottom are rewritten too, each once.
    rocksdb_compactoptions_set_bottommost_level_compaction(how, 3)
    rocksdb_compact_range_opt(database, how, nil, 0, nil, 0)
  }

  func reader() throws -> any BenchReader { RocksDBReader(database, options.labels) }

  func close() throws {
    rocksdb_writebatch_destroy(batch)
    rocksdb_writeoptions_destroy(writing)
    labelKeys?.release()
    rocksdb_close(database)
  }
}

private final class RocksDBReader: BenchReader {
  private let database: OpaquePointer
  private let reading: OpaquePointer
  private let labelKeys: LabelKeys?

  init(_ database: OpaquePointer, _ labels: Labels?) {
    self.database = database
    reading = rocksdb_readoptions_create()
    labelKeys = labels.map { LabelKeys($0) }
  }

  func close() {
    rocksdb_readoptions_destroy(reading)
    labelKeys?.release()
  }

  func get(_ key: UnsafeRawBufferPointer, _ check: inout Check) throws {
    var error: UnsafeMutablePointer<CChar>?
    let value = rocksdb_get_pinned(database, reading, key.characters, key.count, &error)
    try RocksDBEngine.check(error)
    var count = 0
    let bytes = value.flatMap { rocksdb_pinnableslice_value($0, &count) }
    if let start = key.baseAddress { check.see(start, bytes, count) }
    if let value { rocksdb_pinnableslice_destroy(value) }
  }

  private func walk(
    from key: UnsafeRawBufferPointer,
    _ body: (_ key: UnsafeRawBufferPointer, _ iterator: OpaquePointer) throws -> Bool
  ) throws {
    guard let iterator = rocksdb_create_iterator(database, reading) else { return }
    defer { rocksdb_iter_destroy(iterator) }
    rocksdb_iter_seek(iterator, key.characters, key.count)
    while rocksdb_iter_valid(iterator) != 0 {
      var count = 0
      let start = rocksdb_iter_key(iterator, &count)
      guard try body(UnsafeRawBufferPointer(start: start, count: count), iterator) else { break }
      rocksdb_iter_next(iterator)
    }
    var error: UnsafeMutablePointer<CChar>?
    rocksdb_iter_get_error(iterator, &error)
    try RocksDBEngine.check(error)
  }

  func scan(from key: UnsafeRawBufferPointer, count: Int, _ check: inout Check) throws {
    var left = count
    let item = UInt8(ascii: "i")
    try walk(from: key) { key, iterator in
      // The index of labels lies behind the records.
      guard let start = key.baseAddress, key[0] == item else { return false }
      var bytes = 0
      let value = rocksdb_iter_value(iterator, &bytes)
      check.see(start, value, bytes)
      left -= 1
      return left > 0
    }
  }

  private func forEachKey(
    _ label: Int, _ body: (UnsafeRawBufferPointer) throws -> Void
  ) throws {
    guard let labelKeys else { return }
    let prefix = labelKeys.prefix(label)
    try walk(from: prefix) { key, _ in
      guard key.begins(with: prefix) else { return false }
      try body(UnsafeRawBufferPointer(rebasing: key[prefix.count...]))
      return true
    }
  }

  func documents(label: Int, _ check: inout Check) throws {
    try forEachKey(label) { key in try get(key, &check) }
  }

  func keys(label: Int, _ check: inout Check) throws {
    try forEachKey(label) { key in
      if let start = key.baseAddress { check.see(start, key.count) }
    }
  }
}
