import ArgumentParser
import Foundation
import GRDB
import Tidemark
import TidemarkTestKit

#if !canImport(Darwin)
  import FoundationNetworking
#endif

/// A cache that holds so many entries, with what a program would take in its place.
struct Caches: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "caches",
    abstract: "Compares a cache of a store with a table of GRDB and with URLCache, and its reads.")

  @Option(help: "How many entries are inserted; 0 for none.") var n = 1_000_000
  @Option(help: "How many entries a cache holds.") var capacity = 10_000
  @Option(help: "How many entries are read by each call; 0 for none.") var reads = 100_000
  @Option(help: "How often each is run; the middle one counts.") var runs = 3
  @Option(help: "Which ones, separated by commas: tidemark, grdb, urlcache.")
  var engines = "tidemark,grdb,urlcache"
  @Option(help: "Where they are made.") var directory = NSTemporaryDirectory()

  func run() async throws {
    if n > 0 { try runInserts() }
    guard reads > 0 else { return }
    try await CachedReads(count: reads, directory: directory).report(runs: runs)
  }

  private func runInserts() throws {
    print("\(n) inserts into a cache of \(capacity) entries, \(runs) runs: median (least..most)\n")
    var results: [String: [[Double]]] = [:]
    let names = engines.split(separator: ",").map(String.init)
    for _ in 0..<max(1, runs) {
      for name in names { results[name, default: []].append(try measure(name)) }
    }
    Figures.printTable(Self.rows, names.map { ($0, results[$0] ?? []) })
  }

  private static let rows = [
    "insert that evicts, p50 us", "the same, p99.9 us", "the same, longest ms",
    "inserts, thousands a second", "processor an insert, us", "hit, p50 us", "miss, p50 us",
    "open and first hit, ms", "most bytes on the disk, MB", "bytes live, MB",
  ]

  private func measure(_ name: String) throws -> [Double] {
    let path = directory + "/tidemark-cache-bench"
    try? FileManager.default.removeItem(atPath: path)
    try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
    defer { try? FileManager.default.removeItem(atPath: path) }
    func open() throws -> any BenchCache {
      switch name {
      case "tidemark": try TidemarkCache(path, capacity)
      case "grdb": try GRDBCache(path, capacity)
      case "urlcache": try URLCacheCache(path, capacity)
      default: throw BenchError("no cache is called \(name)")
      }
    }
    // A URLCache has a file an entry and lists its directory again and again: it gets less to do.
    let count = name == "urlcache" ? min(n, 1_000) : n
    let reads = name == "urlcache" ? 1_000 : 100_000
    var generator = SeededGenerator(seed: 7)
    var cache: (any BenchCache)? = try open()
    var times = Histogram()
    var most = 0
    let cost = try Cost {
      for number in 0..<count {
        let value = Self.value(number, &generator)
        let before = nanoseconds()
        try cache?.insert("articles/\(number)", value)
        times.add(nanoseconds() - before)
        if number % 20_000 == 0 { most = max(most, Disk.bytes(path)) }
      }
    }
    most = max(most, Disk.bytes(path))
    let kept = max(0, count - capacity / 2)..<count
    let hits = try timed(reads) { number in
      let number = kept.lowerBound + generator.int(below: kept.count)
      return try cache?.get("articles/\(number)") == true
    }
    let misses = try timed(reads) { number in
      try cache?.get("nothing/\(number)") == false
    }
    try cache?.close()
    cache = nil
    let opening = nanoseconds()
    cache = try open()
    guard try cache?.get("articles/\(count - 1)") == true else {
      throw BenchError("\(name) has lost its newest entry")
    }
    let opened = Double(nanoseconds() - opening) / 1e6
    try cache?.close()
    return [
      Double(times.quantile(0.5)) / 1e3, Double(times.quantile(0.999)) / 1e3,
      Double(times.largest) / 1e6, cost.thousands(count), cost.microseconds(count), hits, misses,
      opened, Double(most) / 1e6, Double(capacity * 275) / 1e6,
    ]
  }

  /// About 250 bytes of a document.
  private static func value(_ number: Int, _ generator: inout SeededGenerator) -> [UInt8] {
    let words = (0..<24).map { _ in String(generator.next() % 5_000, radix: 36) }
    let text =
      "{\"id\":\(number),\"title\":\"article \(number)\",\"body\":\"\(words.joined(separator: " "))"
    return Array(text.utf8) + [UInt8](repeating: 0x2e, count: max(0, 248 - text.utf8.count))
      + Array("\"}".utf8)
  }
}

private protocol BenchCache {
  func insert(_ key: String, _ value: [UInt8]) throws
  /// Whether there is such an entry; notes its use.
  func get(_ key: String) throws -> Bool
  func close() throws
}

private struct TidemarkCache: BenchCache {
  let cache: Tidemark.Cache<[UInt8]>

  init(_ path: String, _ capacity: Int) throws {
    let store = try Store.openBlocking(at: path + "/store")
    cache = try store.cache(prefix: "cache/", policy: CachePolicy(capacity: capacity))
  }

  func insert(_ key: String, _ value: [UInt8]) throws { try cache.blocking.put(key, value) }
  func get(_ key: String) throws -> Bool { try cache.value(forKey: key) != nil }
  func close() throws { try cache.store.blocking.close() }
}

/// A table with the time of the last use, as it is written when a cache is wanted.
private final class GRDBCache: BenchCache {
  let pool: DatabasePool
  let capacity: Int
  /// Counted once: SQLite would walk all rows for it at every insert.
  var count = 0

  init(_ path: String, _ capacity: Int) throws {
    self.capacity = capacity
    pool = try DatabasePool(path: path + "/cache.sqlite")
    try pool.write { database in
      try database.execute(
        sql: """
          CREATE TABLE IF NOT EXISTS cache (
            key TEXT PRIMARY KEY, value BLOB NOT NULL, validated REAL NOT NULL, used REAL NOT NULL);
          CREATE INDEX IF NOT EXISTS used ON cache (used);
          """)
    }
    count = try pool.read { try Int.fetchOne($0, sql: "SELECT count(*) FROM cache") ?? 0 }
  }

  func insert(_ key: String, _ value: [UInt8]) throws {
    let now = Date().timeIntervalSince1970
    try pool.write { database in
      try database.execute(
        sql: "INSERT OR REPLACE INTO cache VALUES (?, ?, ?, ?)",
        arguments: [key, Data(value), now, now])
      // Every key of this measurement is a new one.
      if count == capacity {
        try database.execute(
          sql: "DELETE FROM cache WHERE key = (SELECT key FROM cache ORDER BY used LIMIT 1)")
      }
    }
    count = min(count + 1, capacity)
  }

  func get(_ key: String) throws -> Bool {
    let value = try pool.read { database in
      try Data.fetchOne(database, sql: "SELECT value FROM cache WHERE key = ?", arguments: [key])
    }
    guard value != nil else { return false }
    try pool.write { database in
      try database.execute(
        sql: "UPDATE cache SET used = ? WHERE key = ?",
        arguments: [Date().timeIntervalSince1970, key])
    }
    return true
  }

  func close() throws { try pool.close() }
}

private struct URLCacheCache: BenchCache {
  let cache: URLCache

  init(_ path: String, _ capacity: Int) throws {
    cache = URLCache(memoryCapacity: 4 << 20, diskCapacity: capacity * 600, diskPath: path)
  }

  private func request(_ key: String) throws -> URLRequest {
    guard let url = URL(string: "http://localhost/" + key) else {
      throw BenchError("\(key) makes no URL")
    }
    return URLRequest(url: url)
  }

  func insert(_ key: String, _ value: [UInt8]) throws {
    let request = try request(key)
    guard let url = request.url,
      let response = HTTPURLResponse(
        url: url, statusCode: 200, httpVersion: "HTTP/1.1",
        headerFields: ["Cache-Control": "max-age=300"])
    else { throw BenchError("no response can be made") }
    cache.storeCachedResponse(
      CachedURLResponse(response: response, data: Data(value), storagePolicy: .allowed),
      for: request)
  }

  func get(_ key: String) throws -> Bool { cache.cachedResponse(for: try request(key)) != nil }
  func close() throws {}
}
