import CRocksDB

/// How RocksDB is set up.
enum RocksDBTuning {
  /// As it comes: snappy, blocks of 4 KiB.
  case standard
  /// The same with zstd on all levels.
  case zstd
  /// As its wiki begins ("Setup Options and Basic Tuning"): blocks of 16 KiB, LZ4 above and zstd
  /// at the bottom, index and filters in the cache.
  case tuned

  static let writeBufferBytes = 64 << 20
  private static let backgroundJobs: Int32 = 2

  private var blockBytes: Int { self == .tuned ? 16 << 10 : 4 << 10 }

  func configuration(_ options: EngineOptions) -> OpaquePointer? {
    let configuration = rocksdb_options_create()
    rocksdb_options_set_create_if_missing(configuration, 1)
    rocksdb_options_set_write_buffer_size(configuration, Self.writeBufferBytes)
    rocksdb_options_set_max_background_jobs(configuration, Self.backgroundJobs)
    rocksdb_options_set_level_compaction_dynamic_level_bytes(configuration, 1)
    rocksdb_options_set_bytes_per_sync(configuration, 1 << 20)
    // Without it a put goes to the kernel before it is answered.
    rocksdb_options_set_manual_wal_flush(configuration, options.level == .async ? 1 : 0)
    switch self {
    case .standard:
      rocksdb_options_set_compression(configuration, Int32(rocksdb_snappy_compression))
    case .zstd:
      rocksdb_options_set_compression(configuration, Int32(rocksdb_zstd_compression))
    case .tuned:
      rocksdb_options_set_compression(configuration, Int32(rocksdb_lz4_compression))
      rocksdb_options_set_bottommost_compression(configuration, Int32(rocksdb_zstd_compression))
    }
    let table = rocksdb_block_based_options_create()
    let cache = rocksdb_cache_create_lru(options.cacheBytes)
    rocksdb_block_based_options_set_block_cache(table, cache)
    rocksdb_block_based_options_set_block_size(table, blockBytes)
    rocksdb_block_based_options_set_format_version(table, 5)
    rocksdb_block_based_options_set_filter_policy(table, rocksdb_filterpolicy_create_bloom(10))
    if self == .tuned {
      rocksdb_block_based_options_set_cache_index_and_filter_blocks(table, 1)
      rocksdb_block_based_options_set_pin_l0_filter_and_index_blocks_in_cache(table, 1)
    }
    rocksdb_options_set_block_based_table_factory(configuration, table)
    // Both are shared with the options from here on.
    rocksdb_cache_destroy(cache)
    rocksdb_block_based_options_destroy(table)
    return configuration
  }

  func settings(_ options: EngineOptions) -> [String] {
    let compression =
      switch self {
      case .standard: "snappy"
      case .zstd: "zstd on all levels"
      case .tuned: "LZ4, zstd at the bottom, index and filters in the cache"
      }
    let log =
      switch options.level {
      case .async: "manual_wal_flush"
      case .buffered: "no sync"
      case .durable: "sync"
      }
    return [
      "RocksDB", "block cache \(options.cacheBytes >> 20) MiB",
      "bloom filter of 10 bits a key", "write buffer \(Self.writeBufferBytes >> 20) MiB",
      "\(compression), blocks of \(blockBytes >> 10) KiB",
      "\(Self.backgroundJobs) background jobs, level_compaction_dynamic_level_bytes", log,
      "get_pinned", "labels as keys behind the records",
    ]
  }
}
