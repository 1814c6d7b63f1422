import ArgumentParser
import Foundation
import GRDB
import Tidemark

/// Typed objects with indexes, beside the same table of GRDB.
struct Collections: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "collections",
    abstract: "Compares a collection with indexes with a table of GRDB that has the same.")

  @Argument(help: "Debian's packages as the lines of an import.") var file: String
  @Option(help: "How often each is run; the middle one counts. 0 measures reads of objects alone.")
  var runs = 3
  @Option(help: "Which ones, separated by commas: tidemark, grdb.") var engines = "tidemark,grdb"
  @Option(help: "Where they are made.") var directory = NSTemporaryDirectory()
  @Option(
    help: "Measures how a collection's costs grow with its size instead: sizes like 1000,100000.")
  var growth: String?
  @Option(help: "How many objects are read by id, in first pages and in lists; 0 for none.")
  var reads = 100_000

  func run() throws {
    let packages = try DebPackage.read(file)
    if let growth {
      let sizes = growth.split(separator: ",").compactMap { Int($0) }.filter { $0 > 0 }
      guard !sizes.isEmpty else { throw ValidationError("--growth takes sizes like 1000,100000") }
      return try CollectionGrowth(packages, directory).report(sizes)
    }
    print("\(packages.count) packages, \(runs) runs: median (least..most)\n")
    let names = engines.split(separator: ",").map(String.init)
    var results: [String: [[Double]]] = [:]
    for _ in 0..<runs {
      for name in names { results[name, default: []].append(try measure(name, packages)) }
    }
    if runs > 0 { Figures.printTable(Self.rows, names.map { ($0, results[$0] ?? []) }) }
    if runs > 0, names.contains("tidemark") { try ObserverCost(packages).report() }
    if reads > 0 { try ObjectReads(count: reads, directory: directory).report(runs: max(1, runs)) }
  }

  private static let rows = [
    "load with indexes, thousands a second", "open and first object, ms",
    "objects of a section, first time, ms", "objects of a section, again, ms",
    "prefix of a folded name, 20 objects, us", "sorted by size in a section, 20 objects, us",
    "object by id, read before, us", "update of an indexed field, us", "bytes on the disk, MB",
    "load with full-text index, thousands a second", "two words, best 20 objects, us",
    "beginning of a word, best 20 objects, us",
  ]

  private func measure(_ name: String, _ packages: [DebPackage]) throws -> [Double] {
    let path = directory + "/tidemark-collection-bench"
    try? FileManager.default.removeItem(atPath: path)
    try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
    defer { try? FileManager.default.removeItem(atPath: path) }
    func open() throws -> any BenchCollection {
      switch name {
      case "tidemark": try TidemarkPackages(path)
      case "grdb": try GRDBPackages(path)
      default: throw BenchError("no engine is called \(name)")
      }
    }
    var collection: (any BenchCollection)? = try open()
    var start = nanoseconds()
    for part in stride(from: 0, to: packages.count, by: 1_000) {
      try collection?.insert(packages[part..<min(part + 1_000, packages.count)])
    }
    let load = Double(packages.count) / Double(nanoseconds() - start) * 1e6
    try collection?.close()
    collection = nil
    start = nanoseconds()
    collection = try open()
    guard let collection, try collection.get("zlib1g")?.section == "libs" else {
      throw BenchError("\(name) has lost a package")
    }
    let opened = Double(nanoseconds() - start) / 1e6
    let wanted = packages.count { $0.section == "libs" }
    func section() throws -> Double {
      let start = nanoseconds()
      guard try collection.section("libs").count == wanted else {
        throw BenchError("\(name) has another number of packages in a section")
      }
      return Double(nanoseconds() - start) / 1e6
    }
    let first = try section()
    _ = try section()
    let again = try section()
    let prefixes = ["lib", "py", "go", "ru", "xf", "fo", "te", "a", "z"]
    let prefix = try timed(200) { number in
      try collection.prefix(prefixes[number % prefixes.count]).count == 20
    }
    let largest = try timed(200) { _ in try collection.largest("games").count == 20 }
    let names = (0..<1_000).map { packages[$0 * 63 % packages.count].name }
    for name in names { _ = try collection.get(name) }
    let gets = try timed(20_000) { number in
      try collection.get(names[number % names.count]) != nil
    }
    let updates = try timed(2_000) { number in
      try collection.update(names[number % names.count], size: number)
      return true
    }
    let bytes = Double(Disk.bytes(path)) / 1e6
    try collection.close()
    let search = try searches(name, path, packages)
    return [load, opened, first, again, prefix, largest, gets, updates, bytes] + search
  }

  /// Full-text search over names and descriptions.
  private func searches(
    _ name: String, _ path: String, _ packages: [DebPackage]
  ) throws -> [Double] {
    let texts: any BenchTexts =
      name == "tidemark" ? try TidemarkTexts(path) : try GRDBTexts(path)
    let start = nanoseconds()
    for part in stride(from: 0, to: packages.count, by: 1_000) {
      try texts.insert(packages[part..<min(part + 1_000, packages.count)])
    }
    let load = Double(packages.count) / Double(nanoseconds() - start) * 1e6
    try texts.settle()
    let pairs = [
      ("shared", "library"), ("python", "module"), ("data", "files"), ("common", "files"),
      ("image", "viewer"), ("text", "editor"), ("development", "headers"), ("perl", "parser"),
    ]
    for (a, b) in pairs where try texts.search(a, b).isEmpty {
      throw BenchError("\(name) finds nothing for \(a) \(b)")
    }
    let words = try timed(400) { number in
      let pair = pairs[number % pairs.count]
      return try texts.search(pair.0, pair.1).count > 0
    }
    let beginnings = ["comp", "libr", "edit", "pyth", "devel", "ser"]
    let prefixes = try timed(200) { number in
      try texts.complete(beginnings[number % beginnings.count]).count == 20
    }
    try texts.close()
    return [load, words, prefixes]
  }
}

/// A package of Debian's as a program has it.
struct DebPackage: Codable, Equatable, Sendable, FetchableRecord, PersistableRecord {
  var name: String
  var version: String
  var section: String
  var priority: String
  var installedSize: Int?
  var size: Int
  var description: String?
  var homepage: String?
  var depends: [String]?
  var filename: String

  static let databaseTableName = "package"

  /// The packages that an import's lines put.
  static func read(_ path: String) throws -> [DebPackage] {
    struct Line: Decodable { var value: String }
    let decoder = JSONDecoder()
    var packages: [String: DebPackage] = [:]
    let text = try Data(contentsOf: URL(filePath: path))
    for line in text.split(separator: UInt8(ascii: "\n")) {
      let value = try decoder.decode(Line.self, from: Data(line)).value
      let package = try decoder.decode(DebPackage.self, from: Data(value.utf8))
      packages[package.name] = package
    }
    guard !packages.isEmpty else { throw BenchError("\(path) has no lines") }
    return packages.values.sorted { $0.name < $1.name }
  }
}

private protocol BenchCollection {
  func insert(_ packages: ArraySlice<DebPackage>) throws
  func get(_ name: String) throws -> DebPackage?
  func section(_ name: String) throws -> [DebPackage]
  /// The first twenty whose folded name begins with a text, in that order.
  func prefix(_ text: String) throws -> [DebPackage]
  /// The twenty largest of a section.
  func largest(_ section: String) throws -> [DebPackage]
  func update(_ name: String, size: Int) throws
  func close() throws
}

private struct TidemarkPackages: BenchCollection {
  let store: Store
  let packages: ObjectCollection<DebPackage, String>

  init(_ path: String) throws {
    store = try Store.openBlocking(at: path + "/store")
    packages = try store.collection(
      DebPackage.self, named: "packages",
      CollectionSchema(indexes: [
        ObjectIndex("section", .ascending(\.section), .descending(\.size)),
        ObjectIndex("size", \.size), ObjectIndex("name", .folded(\.name)),
      ]), id: { $0.name })
  }

  func insert(_ packages: ArraySlice<DebPackage>) throws {
    try store.blocking.write { batch in
      for package in packages { try batch.put(package, in: self.packages) }
    }
  }

  func get(_ name: String) throws -> DebPackage? { try packages.get(name) }
  func section(_ name: String) throws -> [DebPackage] { try packages.find(\.section == name) }

  func prefix(_ text: String) throws -> [DebPackage] {
    try packages.find(.folded(\.name, hasPrefix: text), sort: [.folded(\.name)], limit: 20)
  }

  func largest(_ section: String) throws -> [DebPackage] {
    try packages.find(\.section == section, sort: [.descending(\.size)], limit: 20)
  }

  func update(_ name: String, size: Int) throws {
    guard var package = try packages.get(name) else { throw BenchError("no package \(name)") }
    package.size = size
    try store.blocking.write { batch in try batch.put(package, in: packages) }
  }

  func close() throws { try store.blocking.close() }
}

private struct GRDBPackages: BenchCollection {
  let pool: DatabasePool

  init(_ path: String) throws {
    pool = try DatabasePool(path: path + "/packages.sqlite")
    try pool.write { database in
      try database.create(table: "package", options: [.ifNotExists]) { table in
        table.primaryKey("name", .text)
        for column in ["version", "section", "priority", "filename"] {
          table.column(column, .text).notNull()
        }
        for column in ["description", "homepage", "depends"] { table.column(column, .text) }
        table.column("installedSize", .integer)
        table.column("size", .integer).notNull()
      }
      try database.execute(
        sql: """
          CREATE INDEX IF NOT EXISTS section ON package (section, size DESC);
          CREATE INDEX IF NOT EXISTS size ON package (size);
          CREATE INDEX IF NOT EXISTS folded ON package (name COLLATE NOCASE);
          """)
    }
  }

  func insert(_ packages: ArraySlice<DebPackage>) throws {
    try pool.write { database in for package in packages { try package.insert(database) } }
  }

  func get(_ name: String) throws -> DebPackage? {
    try pool.read { try DebPackage.fetchOne($0, key: name) }
  }

  func section(_ name: String) throws -> [DebPackage] {
    try pool.read { try DebPackage.filter(Column("section") == name).fetchAll($0) }
  }

  func prefix(_ text: String) throws -> [DebPackage] {
    try pool.read { database in
      try DebPackage.fetchAll(
        database,
        sql: """
          SELECT * FROM package WHERE name >= ? COLLATE NOCASE AND name < ? COLLATE NOCASE
          ORDER BY name COLLATE NOCASE LIMIT 20
          """,
        arguments: [text, text + "\u{FFFF}"])
    }
  }

  func largest(_ section: String) throws -> [DebPackage] {
    try pool.read { database in
      try DebPackage.filter(Column("section") == section).order(Column("size").desc).limit(20)
        .fetchAll(database)
    }
  }

  func update(_ name: String, size: Int) throws {
    try pool.write { database in
      guard var package = try DebPackage.fetchOne(database, key: name) else {
        throw BenchError("no package \(name)")
      }
      package.size = size
      try package.update(database)
    }
  }

  func close() throws { try pool.close() }
}

private protocol BenchTexts {
  func insert(_ packages: ArraySlice<DebPackage>) throws
  /// Waits for what is made in the background.
  func settle() throws
  func search(_ a: String, _ b: String) throws -> [DebPackage]
  func complete(_ beginning: String) throws -> [DebPackage]
  func close() throws
}

private struct TidemarkTexts: BenchTexts {
  let store: Store
  let packages: ObjectCollection<DebPackage, String>

  init(_ path: String) throws {
    store = try Store.openBlocking(at: path + "/texts")
    packages = try store.collection(
      DebPackage.self, named: "packages",
      CollectionSchema(indexes: [
        ObjectIndex(text: "text") { [($0.name, 1), ($0.description ?? "", 1)] }
      ]), id: { $0.name })
  }

  func insert(_ packages: ArraySlice<DebPackage>) throws {
    try store.blocking.write { batch in
      for package in packages { try batch.put(package, in: self.packages) }
    }
  }

  func settle() throws { Thread.sleep(forTimeInterval: 3) }

  func search(_ a: String, _ b: String) throws -> [DebPackage] {
    try packages.search("text", TextQuery("\(a) \(b)", completesLast: false), limit: 20)
      .map(\.object)
  }

  func complete(_ beginning: String) throws -> [DebPackage] {
    try packages.search("text", TextQuery(beginning), limit: 20).map(\.object)
  }

  func close() throws { try store.blocking.close() }
}

/// A table of GRDB with FTS5 beside it, kept up by its triggers.
private struct GRDBTexts: BenchTexts {
  let pool: DatabasePool

  init(_ path: String) throws {
    pool = try DatabasePool(path: path + "/texts.sqlite")
    try pool.write { database in
      try database.create(table: "package") { table in
        table.column("name", .text).notNull().unique()
        for column in ["version", "section", "priority", "filename"] {
          table.column(column, .text).notNull()
        }
        for column in ["description", "homepage", "depends"] { table.column(column, .text) }
        table.column("installedSize", .integer)
        table.column("size", .integer).notNull()
      }
      try database.create(virtualTable: "texts", using: FTS5()) { table in
        table.tokenizer = .unicode61()
        table.synchronize(withTable: "package")
        table.column("name")
        table.column("description")
      }
    }
  }

  func insert(_ packages: ArraySlice<DebPackage>) throws {
    try pool.write { database in for package in packages { try package.insert(database) } }
  }

  func settle() throws {}

  private func fetch(_ pattern: String) throws -> [DebPackage] {
    try pool.read { database in
      try DebPackage.fetchAll(
        database,
        sql: """
          SELECT package.* FROM package JOIN texts ON texts.rowid = package.rowid
          WHERE texts MATCH ? ORDER BY bm25(texts) LIMIT 20
          """,
        arguments: [pattern])
    }
  }

  func search(_ a: String, _ b: String) throws -> [DebPackage] { try fetch("\(a) \(b)") }
  func complete(_ beginning: String) throws -> [DebPackage] { try fetch(beginning + "*") }
  func close() throws { try pool.close() }
}
