import Foundation
import Tidemark

/// Does one thing again and again, for `Tools/bench paths` to see which files that passes.
@main
enum PathBench {
  private struct Item: Codable, Identifiable {
    var id: Int
    var section: Int
    var size: Int
  }

  private static let keys = 20_000

  static func main() async throws {
    let arguments = CommandLine.arguments
    guard arguments.count == 4, let count = Int(arguments[2]), count < keys else {
      throw Refusal(words: "usage: path-bench put|get|hit|query COUNT DIRECTORY")
    }
    // No value stays in memory where a get is to be cold.
    let configuration = Store.Configuration(
      cacheBytes: arguments[1] == "get" ? 0 : 64 << 20, compaction: .onRequest)
    let store = try await Store.open(at: arguments[3], configuration: configuration)
    switch arguments[1] {
    case "put":
      for number in 0..<count { try await store.put("key/\(number)", "value \(number)") }
    case "get":
      try fill(store)
      for number in 0..<count { _ = try store.value(forKey: "key/\(number * 7 % keys)") }
    case "hit": try await hit(store, count)
    case "query": try query(store, count)
    default: throw Refusal(words: "nothing is called \(arguments[1])")
    }
    // Closing does something for each key, too, and is no part of it.
    withExtendedLifetime(store) { exit(0) }
  }

  private static func fill(_ store: Store) throws {
    for first in stride(from: 0, to: keys, by: 1_000) {
      try store.blocking.write { batch in
        for number in first..<first + 1_000 { try batch.put("key/\(number)", "value \(number)") }
      }
    }
  }

  private static func hit(_ store: Store, _ count: Int) async throws {
    let cache = try store.cache(prefix: "cache/", policy: CachePolicy(maxAge: .seconds(86_400)))
    for number in 0..<100 { try await cache.put("key/\(number)", [1, 2, 3]) }
    for number in 0..<100 { _ = try cache.entry(forKey: "key/\(number)") }
    for number in 0..<count {
      _ = try await cache.value(for: "key/\(number % 100)", policy: .automatic) { [] }
    }
  }

  private static func query(_ store: Store, _ count: Int) throws {
    let items = try store.collection(
      Item.self, named: "items",
      CollectionSchema(indexes: [
        ObjectIndex("section", .ascending(\.section), .descending(\.size))
      ]))
    try store.blocking.write { batch in
      for number in 0..<400 {
        try batch.put(Item(id: number, section: number % 20, size: number), in: items)
      }
    }
    for number in 0..<count {
      _ = try items.find(\.section == number % 20, sort: [.descending(\.size)], limit: 20)
    }
  }

  private struct Refusal: Error, CustomStringConvertible {
    var words: String

    var description: String { words }
  }
}
