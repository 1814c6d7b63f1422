import Foundation
import GRDB
import Tidemark

/// Reads of a cache all of whose entries were read before, by each call that a program makes,
/// beside what it would have in the place of a cache.
struct CachedReads {
  let count: Int
  let directory: String

  /// One way to read, and its time of a read in microseconds in each run.
  private struct Row {
    var title: String
    var times: [(wall: Double, processor: Double)] = []
  }

  func report(runs: Int) async throws {
    let path = directory + "/tidemark-cached-reads"
    try? FileManager.default.removeItem(atPath: path)
    try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
    defer { try? FileManager.default.removeItem(atPath: path) }
    // The hot cache has room for every entry.
    let configuration = Store.Configuration(cacheBytes: max(16 << 20, 640 * count))
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
    var rows: [Row] = []
    func note(_ title: String, _ cost: Cost, _ share: Double = 1) {
      let time = (cost.wall / Double(count) * 1e6 * share, cost.microseconds(count) * share)
      if let place = rows.firstIndex(where: { $0.title == title }) {
        rows[place].times.append(time)
      } else {
        rows.append(Row(title: title, times: [time]))
      }
    }
    let peers = try Peers(ordered, value, path)
    for _ in 0..<max(1, runs) {
      func each(_ title: String, _ keys: [String], _ body: (String) throws -> Void) rethrows {
        let share = Double(count) / Double(keys.count)
        note(title, try Cost { for key in keys { try body(key) } }, share)
      }
      try each("store.value(forKey:)", full) { _ = try store.value(forKey: $0) }
      try each("cache.value(forKey:)", keys) { _ = try cache.value(forKey: $0) }
      try each("cache.entry(forKey:)", keys) { _ = try cache.entry(forKey: $0) }
      try each("cache.isValid", keys) { _ = try cache.isValid($0) }
      for (name, policy) in Self.policies {
        note("value(for:policy:fetch:), \(name)", try await read(cache, keys, policy))
        let cost = try await readOnMain(cache, keys, policy)
        note("value(for:policy:fetch:), \(name), main actor", cost)
      }
      note("8 tasks, automatic", try await readTogether(cache, keys, tasks: 8), 1.0 / 8)
      each("NSCache", keys) { _ = peers.foundation.object(forKey: $0 as NSString) }
      each("dictionary under a lock", keys) { _ = peers.value($0) }
      let some = Array(keys.prefix(count / 20))
      try each("GRDB, with the time of use", some) { try peers.read($0) }
    }
    show(rows)
    try await store.close()
  }

  private func show(_ rows: [Row]) {
    print("\nReads of \(count) entries that were read before, us: median (least..most)\n")
    print("| | a read | processor |\n|---|---|---|")
    for row in rows {
      let wall = Statistics(row.times.map(\.wall))
      let range = "\(Figures.short(wall.smallest))..\(Figures.short(wall.largest))"
      let processor = Statistics.median(row.times.map(\.processor))
      print(
        "| \(row.title) | \(Figures.short(wall.median)) (\(range)) | \(Figures.short(processor)) |")
    }
  }

  private static let policies: [(String, ReadPolicy)] = [
    ("automatic", .automatic), ("cacheFirst", .cacheFirst),
    ("staleWhileRevalidate", .staleWhileRevalidate), ("cacheOnly", .cacheOnly(maxStale: nil)),
  ]

  /// Reads on the executor of the caller: a task, or the main actor.
  nonisolated(nonsending) private func read(
    _ cache: Tidemark.Cache<[UInt8]>, _ keys: [String], _ policy: ReadPolicy
  ) async throws -> Cost {
    let (before, processor) = (nanoseconds(), Cost.processorSeconds())
    for key in keys {
      let value = try await cache.value(for: key, policy: policy) { try await Self.fetch(key) }
      guard value?.count == 250 else { throw BenchError("a value is another one") }
    }
    return Cost(
      wall: Double(nanoseconds() - before) * 1e-9,
      processor: Cost.processorSeconds() - processor)
  }

  @MainActor
  private func readOnMain(
    _ cache: Tidemark.Cache<[UInt8]>, _ keys: [String], _ policy: ReadPolicy
  ) async throws -> Cost {
    try await read(cache, keys, policy)
  }

  private func readTogether(
    _ cache: Tidemark.Cache<[UInt8]>, _ keys: [String], tasks: Int
  ) async throws -> Cost {
    let (before, processor) = (nanoseconds(), Cost.processorSeconds())
    try await withThrowingTaskGroup(of: Void.self) { group in
      for _ in 0..<tasks { group.addTask { _ = try await read(cache, keys, .automatic) } }
      try await group.waitForAll()
    }
    return Cost(
      wall: Double(nanoseconds() - before) * 1e-9,
      processor: Cost.processorSeconds() - processor)
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
