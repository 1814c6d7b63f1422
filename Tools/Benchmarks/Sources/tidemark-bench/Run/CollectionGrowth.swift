import Foundation
import Tidemark

/// The costs of a collection's operations when it is small and when it is large.
struct CollectionGrowth {
  private static let observers = 100
  private static let rows = [
    "put, us", "update of an indexed field, us", "the same with 100 observers of other objects, us",
    "object by id, us", "20 by a folded prefix, us", "open and first object, ms",
    "log, bytes an object", "memory without indexes, bytes an object",
    "memory of an index of a number, bytes an entry",
    "memory of an index of folded text, bytes an entry", "put of 1 KB with full-text index, us",
    "two words in texts of 1 KB, best 20, us",
    "bytes of the full-text index before compression, an object",
  ]

  private let packages: [DebPackage]
  private let path: String

  init(_ packages: [DebPackage], _ directory: String) {
    self.packages = packages
    path = directory + "/tidemark-collection-growth"
  }

  func report(_ sizes: [Int]) throws {
    var columns: [(name: String, runs: [[Double]])] = []
    for size in sizes { columns.append(("\(size)", [try measure(size)])) }
    Figures.printTable(Self.rows, columns)
  }

  private func measure(_ size: Int) throws -> [Double] {
    let plain = try memory(size, [])
    let number = try memory(size, [ObjectIndex("size", \.size)])
    let folded = try memory(size, [ObjectIndex("name", .folded(\.name))])
    let figures = try operations(size)
    return figures + [plain, number - plain, folded - plain] + (try texts(size))
  }

  /// Packages again and again, each time with other names.
  private func package(_ number: Int) -> DebPackage {
    var package = packages[number % packages.count]
    if number >= packages.count { package.name += "~\(number / packages.count)" }
    return package
  }

  /// A package whose description has about 1 KB: those of others follow its own.
  private func text(_ number: Int) -> DebPackage {
    var package = package(number)
    var words = ""
    var next = number
    while words.utf8.count < 1_024 {
      words += (packages[next % packages.count].description ?? "") + " "
      next = (next * 31 + 7) % packages.count
    }
    package.description = words
    return package
  }

  private func open() throws -> Store {
    try Store.openBlocking(at: .directory(path), configuration: Store.Configuration())
  }

  private func collection(
    _ store: Store, _ indexes: [ObjectIndex<DebPackage>]
  ) throws -> ObjectCollection<DebPackage, String> {
    try store.collection(
      DebPackage.self, named: "packages", CollectionSchema(indexes: indexes), id: { $0.name })
  }

  private func fill(
    _ collection: ObjectCollection<DebPackage, String>, _ size: Int, isLong: Bool = false
  ) throws -> Double {
    let start = nanoseconds()
    for part in stride(from: 0, to: size, by: 1_000) {
      try collection.store.blocking.write { batch in
        for number in part..<min(size, part + 1_000) {
          try batch.put(isLong ? text(number) : package(number), in: collection)
        }
      }
    }
    return Double(nanoseconds() - start) / Double(size) / 1e3
  }

  private func emptied() throws {
    try? FileManager.default.removeItem(atPath: path)
  }

  /// The store's own count of its memory after a load, an object.
  private func memory(_ size: Int, _ indexes: [ObjectIndex<DebPackage>]) throws -> Double {
    try emptied()
    defer { try? emptied() }
    let store = try open()
    _ = try fill(try collection(store, indexes), size)
    defer { try? store.blocking.close() }
    return Double(try store.status.memoryBytes) / Double(size)
  }

  private func operations(_ size: Int) throws -> [Double] {
    try emptied()
    defer { try? emptied() }
    let indexes: [ObjectIndex<DebPackage>] = [
      ObjectIndex("section", .ascending(\.section), .descending(\.size)),
      ObjectIndex("size", \.size), ObjectIndex("name", .folded(\.name)),
    ]
    var store = try open()
    var items = try collection(store, indexes)
    let put = try fill(items, size)
    let bytes = Double(Disk.bytes(path)) / Double(size)
    let names = (0..<1_000).map { package($0 * 631 % size).name }
    func update(_ number: Int) throws -> Bool {
      let name = names[number % names.count]
      guard var package = try items.get(name) else { return false }
      package.size = number
      try store.blocking.write { batch in try batch.put(package, in: items) }
      return true
    }
    let updates = try timed(2_000, update)
    let observed = items
    let tasks = (0..<Self.observers).map { number in
      Task.detached { for try await _ in observed.values(for: "nobody/\(number)") {} }
    }
    // Tasks begin by themselves.
    Thread.sleep(forTimeInterval: 0.2)
    let watched = try timed(2_000, update)
    for task in tasks { task.cancel() }
    let gets = try timed(20_000) { number in
      try items.get(names[number % names.count]) != nil
    }
    let prefixes = ["lib", "py", "go", "ru", "a"]
    let prefix = try timed(200) { number in
      let text = prefixes[number % prefixes.count]
      return try items.find(.folded(\.name, hasPrefix: text), sort: [.folded(\.name)], limit: 20)
        .count <= 20
    }
    try store.blocking.close()
    let start = nanoseconds()
    store = try open()
    items = try collection(store, indexes)
    guard try items.get(names[0]) != nil else { throw BenchError("a package is lost") }
    let opened = Double(nanoseconds() - start) / 1e6
    try store.blocking.close()
    return [put, updates, watched, gets, prefix, opened, bytes]
  }

  private func texts(_ size: Int) throws -> [Double] {
    try emptied()
    defer { try? emptied() }
    let store = try open()
    let items = try collection(
      store, [ObjectIndex(text: "text") { [($0.name, 1), ($0.description ?? "", 1)] }])
    let put = try fill(items, size, isLong: true)
    // Segments are merged on a thread.
    Thread.sleep(forTimeInterval: 3)
    let pairs = [("shared", "library"), ("data", "files"), ("development", "headers")]
    let words = try timed(200) { number in
      let pair = pairs[number % pairs.count]
      return try items.search(
        "text", TextQuery("\(pair.0) \(pair.1)", completesLast: false), limit: 20
      ).count <= 20
    }
    let bytes = try store.indexUsage().reduce(0) { $0 + $1.bytes }
    try store.blocking.close()
    return [put, words, Double(bytes) / Double(size)]
  }
}
