/// When a single put is answered.
enum PutLevel: String, Codable {
  /// At once; the end of the process may lose the last of them.
  case async
  /// As soon as the kernel has it; survives the end of the process.
  case buffered
  /// As soon as the disk has it.
  case durable
}

/// How an engine is opened.
struct EngineOptions {
  var path: String
  /// How many records the store is to hold.
  var n: Int
  var values: Values
  var cacheBytes: Int
  var level = PutLevel.buffered
  /// Whether every record has a label, found again through an index.
  var labels: Labels?

  /// Raw bytes of all records.
  var rawBytes: Int { n * (values.mean + KeyText.byteCount) }
}

/// An engine with a database that is open. All calls are at the same height: keys and values are
/// lent from memory that was filled before the clock ran, and whatever an engine's interface wants
/// beyond that is its own cost.
protocol BenchEngine: AnyObject, Sendable {
  /// How it is configured, for the reader of the result.
  var settings: [String] { get }

  /// Writes a batch: all or nothing, without a sync.
  func load(_ records: Records, _ range: Range<Int>) throws

  /// Writes one record, which is there already or not; any thread may.
  func put(_ key: UnsafeRawBufferPointer, _ value: UnsafeRawBufferPointer, _ index: UInt32) throws

  /// Deletes a batch, with the labels of the records.
  func delete(_ records: Records, _ range: Range<Int>) throws

  /// Makes everything durable.
  func flush() throws

  /// Somebody who reads, for one thread.
  func reader() throws -> any BenchReader

  /// Drops what is superseded and leaves the data as it serves readers best.
  /// - Parameter dense: for least space, where the engine knows such a form.
  func compact(dense: Bool) throws

  func close() throws
}

/// Reads for one thread. Every call shows the newest state.
protocol BenchReader: AnyObject {
  func get(_ key: UnsafeRawBufferPointer, _ check: inout Check) throws
  /// Reads records in the order of their keys, from a key on.
  func scan(from key: UnsafeRawBufferPointer, count: Int, _ check: inout Check) throws
  /// Reads all records with a label.
  func documents(label: Int, _ check: inout Check) throws
  /// The same with everything that the engine keeps of a record: its labels, its times.
  func whole(_ key: UnsafeRawBufferPointer, _ check: inout Check) throws
  /// Reads all records with a label, with everything that the engine keeps of them.
  func wholeDocuments(label: Int, _ check: inout Check) throws
  /// Reads the keys of all records with a label.
  func keys(label: Int, _ check: inout Check) throws
  /// Has to come before the engine is closed.
  func close()
}

/// The peers keep nothing of a record but what they were given.
extension BenchReader {
  func whole(_ key: UnsafeRawBufferPointer, _ check: inout Check) throws { try get(key, &check) }

  func wholeDocuments(label: Int, _ check: inout Check) throws {
    try documents(label: label, &check)
  }
}

/// Which engine.
enum EngineName: String, Codable, CaseIterable {
  case tidemark
  case lmdb
  case leveldb
  case rocksdb
  case rocksdbZstd = "rocksdb-zstd"
  /// As its wiki tunes it: blocks of 16 KiB, LZ4 above, zstd at the bottom.
  case rocksdbTuned = "rocksdb-tuned"
  case sqlite
  case tkrzw
  case grdb
  /// Stores nothing: what the loops themselves cost.
  case empty

  /// The engines that run when nobody asks for others.
  static let usual: [EngineName] = [
    .tidemark, .lmdb, .leveldb, .rocksdb, .rocksdbZstd, .sqlite, .tkrzw, .grdb, .empty,
  ]

  func open(_ options: EngineOptions) throws -> any BenchEngine {
    switch self {
    case .tidemark: try TidemarkEngine(options)
    case .lmdb: try LMDBEngine(options)
    case .leveldb: try LevelDBEngine(options)
    case .rocksdb: try RocksDBEngine(options, .standard)
    case .rocksdbZstd: try RocksDBEngine(options, .zstd)
    case .rocksdbTuned: try RocksDBEngine(options, .tuned)
    case .sqlite: try SQLiteEngine(options)
    case .tkrzw: try TkrzwEngine(options)
    case .grdb: try GRDBEngine(options)
    case .empty: try EmptyEngine(options)
    }
  }

  /// Whether puts without a write call each are offered.
  var hasAsync: Bool {
    switch self {
    case .leveldb, .sqlite, .grdb: false
    default: true
    }
  }

  /// Whether a put is in the kernel when it is answered, and no sooner durable.
  var hasBuffered: Bool { self != .tkrzw }

  /// Whether records can be read in the order of their keys.
  var isOrdered: Bool { self != .tkrzw }

  /// Whether puts go on while it compacts.
  var compactsBesideWriters: Bool {
    switch self {
    case .lmdb, .sqlite, .grdb, .empty: false
    default: true
    }
  }
}
