public import Tidemark

/// A browser of a catalogue: search as you type, by name and by words, and lists of a section.
public struct PackageBrowser: Sendable {
  /// A package of a distribution.
  public struct Package: Codable, Sendable, Equatable {
    public var name: String
    public var section: String
    public var size: Int
    public var description: String?

    public init(name: String, section: String, size: Int, description: String?) {
      self.name = name
      self.section = section
      self.size = size
      self.description = description
    }
  }

  let packages: ObjectCollection<Package, String>

  public init(_ store: Store) throws {
    packages = try store.collection(
      Package.self, named: "packages",
      CollectionSchema(indexes: [
        ObjectIndex("name", .folded(\.name)),
        ObjectIndex("section", .ascending(\.section), .descending(\.size)),
        ObjectIndex("names", .ascending(\.section), .folded(\.name)),
        ObjectIndex(text: "text") { [($0.name, 3), ($0.description ?? "", 1)] },
      ]), id: { $0.name })
  }

  /// How many packages there are.
  public func count() throws -> Int { try packages.count() }

  /// Takes packages up, a thousand in a commit.
  public func add(_ list: [Package]) async throws {
    for start in stride(from: 0, to: list.count, by: 1_000) {
      try await packages.store.write { batch in
        for package in list[start..<min(start + 1_000, list.count)] {
          try batch.put(package, in: packages)
        }
      }
    }
  }

  /// Packages to show while somebody types: names that begin so, then what has the words.
  public func suggestions(
    for typed: String, in section: String? = nil, limit: Int = 10
  ) throws -> [Package] {
    let within: ObjectCondition<Package>? = section.map { \.section == $0 }
    let begins: ObjectCondition<Package> = .folded(\.name, hasPrefix: typed)
    var found = try packages.find(
      within.map { $0 && begins } ?? begins, sort: [.folded(\.name)], limit: limit)
    let hits = try packages.search(
      "text", TextQuery(typed), where: within ?? .everything, limit: limit)
    for hit in hits where found.count < limit && !found.contains(hit.object) {
      found.append(hit.object)
    }
    return found
  }

  public func has(section: String) throws -> Bool {
    try packages.first(\.section == section) != nil
  }

  /// The sections, and the largest packages of one.
  public func sections() throws -> [String] { try packages.distinct(\.section) }

  public func largest(in section: String, limit: Int = 10) throws -> [Package] {
    try packages.find(\.section == section, sort: [.descending(\.size)], limit: limit)
  }
}
