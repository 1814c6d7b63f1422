import Foundation
import GRDB
import Tidemark

/// Reads of a cache all of whose entries were read before, by each call that a program makes,
/// beside what it would have in the place of a cache.
struct CachedReads {
  let count: Int
  let directory: String

  func report(runs: Int) async throws {
    let path = directory + "/tidemark-cached-reads"
    try? FileManager.default.removeItem(atPath: path)
    try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
    defer { try? FileManager.default.removeItem(atPath: path) }
    // The hot cache has room for every entry.
    let configuration = Store.Configuration(cacheBytes: max(16 << 20, 768 * count))
    let store = try await Store.open(at: path + "/store", configuration: configuration)
    let cache = try store.cache(
      prefix: "cache/", policy: CachePolicy(maxAge: .seconds(86_400), capacity: count))
    let value = [UInt8](repeating: 0x61, count: 250)
    let ordered = (0..<count).map { "articles/\($0)" }
    for key in ordered { try cache.blocking.put(key, value) }
    let keys = ordered.shuffled()
    let full = keys.map { "cache/" + $0 }
    for key in keys {
      guard try cache.entry(forKey: key)?.isValid == true else {
        throw BenchError("\(key) is not there")
      }
    }
    var table = ReadTable()
    let peers = try Peers(ordered, value, path)
    for _ in 0..<max(1, runs) {
      func each(_ title: String, _ keys: [String], _ body: (String) throws -> Void) rethrows {
        try table.add(title, reads: keys.count) { for key in keys { try body(key) } }
      }
      try each("store.value(forKey:)", full) { _ = try store.value(forKey: $0) }
      try each("cache.value(forKey:)", keys) { _ = try cache.value(forKey: $0) }
      try each("cache.entry(forKey:)", keys) { _ = try cache.entry(forKey: $0) }
      try each("cache.isValid", keys) { _ = try cache.isValid($0) }
      for (name, policy) in Self.policies {
        let title = "value(for:policy:fetch:), \(name)"
        try await table.add(title, reads: count) { try await read(cache, keys, policy) }
        try await table.add(title + ", main actor", reads: count) {
          try await readOnMain(cache, keys, policy)
        }
      }
      try await table.add("8 tasks, store.value(forKey:)", reads: 8 * count, tasks: 8) {
        try await readStoreTogether(store, full, tasks: 8)
      }
      try await table.add("8 tasks, automatic", reads: 8 * count, tasks: 8) {
        try await readTogether(cache, keys, tasks: 8)
      }
      each("NSCache", keys) { _ = peers.foundation.object(forKey: $0 as NSString) }
      each("dictionary under a lock", keys) { _ = peers.value($0) }
      try each("GRDB, with the time of use", Array(keys.prefix(count / 20))) { try peers.read($0) }
    }
    table.show("Reads of \(count) entries that were read before")
    try await store.close()
  }

  private static let policies: [(String, ReadPolicy)] = [
    ("automatic", .automatic), ("cacheFirst", .cacheFirst),
    ("staleWhileRevalidate", .staleWhileRevalidate), ("cacheOnly", .cacheOnly(maxStale: nil)),
  ]

  /// Reads on the executor of the caller: a task, or the main actor.
  nonisolated(nonsending) private func read(
    _ cache: Tidemark.Cache<[UInt8]>, _ keys: [String], _ policy: ReadPolicy
  ) async throws {
    for key in keys {
      let value = try await cache.value(for: key, policy: policy) { try await Self.fetch(key) }
      guard value?.count == 250 else { throw BenchError("a value is another one") }
    }
  }

  @MainActor
  private func readOnMain(
    _ cache: Tidemark.Cache<[UInt8]>, _ keys: [String], _ policy: ReadPolicy
  ) async throws {
    try await read(cache, keys, policy)
  }

  private func readTogether(
    _ cache: Tidemark.Cache<[UInt8]>, _ keys: [String], tasks: Int
  ) async throws {
    try await withThrowingTaskGroup(of: Void.self) { group in
      for _ in 0..<tasks { group.addTask { try await read(cache, keys, .automatic) } }
      try await group.waitForAll()
    }
  }

  /// What the machine's cores give reads that note no use.
  private func readStoreTogether(_ store: Store, _ keys: [String], tasks: Int) async throws {
    try await withThrowingTaskGroup(of: Void.self) { group in
      for _ in 0..<tasks {
        group.addTask { for key in keys { _ = try store.value(forKey: key) } }
      }
      try await group.waitForAll()
    }
  }

  private static func fetch(_ key: String) async throws -> [UInt8] {
    throw BenchError("\(key) is asked for")
  }
}

/// NSCache, a dictionary under a lock and a table of GRDB, filled with the entries of the cache.
private final class Peers {
  let foundation = NSCache<NSString, NSData>()
  private let lock = NSLock()
  private var dictionary: [String: [UInt8]] = [:]
  private let pool: DatabasePool

  init(_ keys: [String], _ value: [UInt8], _ path: String) throws {
    pool = try DatabasePool(path: path + "/cache.sqlite")
    for key in keys {
      foundation.setObject(NSData(data: Data(value)), forKey: key as NSString)
      dictionary[key] = value
    }
    try pool.write { database in
      try database.execute(
        sql: "CREATE TABLE cache (key TEXT PRIMARY KEY, value BLOB NOT NULL, used REAL NOT NULL)")
      for key in keys {
        try database.execute(
          sql: "INSERT INTO cache VALUES (?, ?, 0)", arguments: [key, Data(value)])
      }
    }
  }

  func value(_ key: String) -> [UInt8]? { lock.withLock { dictionary[key] } }

  func read(_ key: String) throws {
    let value = try pool.read { database in
      try Data.fetchOne(database, sql: "SELECT value FROM cache WHERE key = ?", arguments: [key])
    }
    guard value?.count == 250 else { throw BenchError("a row is another one") }
    try pool.write { database in
      try database.execute(
        sql: "UPDATE cache SET used = ? WHERE key = ?",
        arguments: [Date().timeIntervalSince1970, key])
    }
  }
}
