import CLevelDB
import Foundation

/// LevelDB by its C interface: a log-structured merge tree.
final class LevelDBEngine: BenchEngine, @unchecked Sendable {
  private let options: EngineOptions
  private let configuration: OpaquePointer
  private let cache: OpaquePointer
  private let filter: OpaquePointer
  private let database: OpaquePointer
  private let batch: OpaquePointer
  private let writing: OpaquePointer
  private let labelKeys: LabelKeys?

  private static let writeBufferBytes = 64 << 20

  init(_ options: EngineOptions) throws {
    guard options.level != .async else { throw BenchError("LevelDB writes every put to its log") }
    self.options = options
    configuration = leveldb_options_create()
    leveldb_options_set_create_if_missing(configuration, 1)
    cache = leveldb_cache_create_lru(options.cacheBytes)
    leveldb_options_set_cache(configuration, cache)
    filter = leveldb_filterpolicy_create_bloom(10)
    leveldb_options_set_filter_policy(configuration, filter)
    leveldb_options_set_write_buffer_size(configuration, Self.writeBufferBytes)
    leveldb_options_set_compression(configuration, Int32(leveldb_snappy_compression))
    var error: UnsafeMutablePointer<CChar>?
    let opened = leveldb_open(configuration, options.path, &error)
    try Self.check(error)
    guard let opened else { throw BenchError("LevelDB did not open") }
    database = opened
    batch = leveldb_writebatch_create()
    writing = leveldb_writeoptions_create()
    leveldb_writeoptions_set_sync(writing, options.level == .durable ? 1 : 0)
    labelKeys = options.labels.map { LabelKeys($0) }
  }

  fileprivate static func check(_ error: UnsafeMutablePointer<CChar>?) throws {
    guard let error else { return }
    defer { leveldb_free(error) }
    throw BenchError("LevelDB: \(String(cString: error))")
  }

  var settings: [String] {
    [
      "LevelDB \(leveldb_major_version()).\(leveldb_minor_version())",
      "block cache \(options.cacheBytes >> 20) MiB", "bloom filter of 10 bits a key",
      "write buffer \(Self.writeBufferBytes >> 20) MiB", "snappy, blocks of 4 KiB",
      options.level == .durable ? "sync" : "no sync", "labels as keys behind the records",
    ]
  }

  func load(_ records: Records, _ range: Range<Int>) throws {
    leveldb_writebatch_clear(batch)
    for place in range {
      let key = records.key(place)
      let value = records.value(place)
      leveldb_writebatch_put(batch, key.characters, key.count, value.characters, value.count)
      guard let labelKeys else { continue }
      let label = labelKeys.key(records.indices[place], key)
      leveldb_writebatch_put(batch, label.characters, label.count, label.characters, 0)
    }
    try write()
  }

  private func write() throws {
    var error: UnsafeMutablePointer<CChar>?
    leveldb_write(database, writing, batch, &error)
    try Self.check(error)
  }

  func put(_ key: UnsafeRawBufferPointer, _ value: UnsafeRawBufferPointer, _ index: UInt32) throws {
    var error: UnsafeMutablePointer<CChar>?
    leveldb_put(
      database, writing, key.characters, key.count, value.characters, value.count, &error)
    try Self.check(error)
  }

  func delete(_ records: Records, _ range: Range<Int>) throws {
    leveldb_writebatch_clear(batch)
    for place in range {
      let key = records.key(place)
      leveldb_writebatch_delete(batch, key.characters, key.count)
      guard let labelKeys else { continue }
      let label = labelKeys.key(records.indices[place], key)
      leveldb_writebatch_delete(batch, label.characters, label.count)
    }
    try write()
  }

  func flush() throws {
    guard let sync = leveldb_writeoptions_create() else { return }
    defer { leveldb_writeoptions_destroy(sync) }
    leveldb_writeoptions_set_sync(sync, 1)
    leveldb_writebatch_clear(batch)
    var error: UnsafeMutablePointer<CChar>?
    // An empty batch is written and synced like any other, and so is all that came before it.
    leveldb_write(database, sync, batch, &error)
    try Self.check(error)
  }

  func compact(dense: Bool) throws {
    leveldb_compact_range(database, nil, 0, nil, 0)
  }

  func reader() throws -> any BenchReader { LevelDBReader(database, options.labels) }

  func close() throws {
    leveldb_writebatch_destroy(batch)
    leveldb_writeoptions_destroy(writing)
    labelKeys?.release()
    leveldb_close(database)
  }
}

private final class LevelDBReader: BenchReader {
  private let database: OpaquePointer
  private let reading: OpaquePointer
  private let labelKeys: LabelKeys?

  init(_ database: OpaquePointer, _ labels: Labels?) {
    self.database = database
    reading = leveldb_readoptions_create()
    labelKeys = labels.map { LabelKeys($0) }
  }

  func close() {
    leveldb_readoptions_destroy(reading)
    labelKeys?.release()
  }

  func get(_ key: UnsafeRawBufferPointer, _ check: inout Check) throws {
    var count = 0
    var error: UnsafeMutablePointer<CChar>?
    let value = leveldb_get(database, reading, key.characters, key.count, &count, &error)
    try LevelDBEngine.check(error)
    if let start = key.baseAddress { check.see(start, value, count) }
    leveldb_free(value)
  }

  private func walk(
    from key: UnsafeRawBufferPointer,
    _ body: (_ key: UnsafeRawBufferPointer, _ iterator: OpaquePointer) throws -> Bool
  ) throws {
    guard let iterator = leveldb_create_iterator(database, reading) else { return }
    defer { leveldb_iter_destroy(iterator) }
    leveldb_iter_seek(iterator, key.characters, key.count)
    while leveldb_iter_valid(iterator) != 0 {
      var count = 0
      let start = leveldb_iter_key(iterator, &count)
      guard try body(UnsafeRawBufferPointer(start: start, count: count), iterator) else { break }
      leveldb_iter_next(iterator)
    }
    var error: UnsafeMutablePointer<CChar>?
    leveldb_iter_get_error(iterator, &error)
    try LevelDBEngine.check(error)
  }

  func scan(from key: UnsafeRawBufferPointer, count: Int, _ check: inout Check) throws {
    var left = count
    let item = UInt8(ascii: "i")
    try walk(from: key) { key, iterator in
      // The index of labels lies behind the records.
      guard let start = key.baseAddress, key[0] == item else { return false }
      var bytes = 0
      let value = leveldb_iter_value(iterator, &bytes)
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
