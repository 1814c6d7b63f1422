import Tidemark

/// A collection of real records, in the three versions that a sync campaign goes through: as a file
/// of NDJSON has it, as a later one has changed it, and with some items taken out again.
struct CollectionData: Sendable {
  /// An item of a collection.
  struct Item: Sendable {
    var hash: [UInt8]
    var value: [UInt8]
    var labels: [EntryLabel]
  }

  typealias Version = [Key: Item]

  /// So many items are taken out for the last version.
  static let removed = 1_000

  let versions: [Version]

  /// - Parameters:
  ///   - records: the path of the first file.
  ///   - updates: the path of the other one, which has the lines that are new or different.
  init(records: String, updates: String) async throws {
    let first = try await Self.read(records)
    let second = first.merging(try await Self.read(updates)) { $1 }
    var third = second
    let keys = second.keys.sorted()
    let step = max(1, keys.count / Self.removed)
    for key in stride(from: 0, to: keys.count, by: step).prefix(Self.removed) {
      third[keys[key]] = nil
    }
    versions = [[:], first, second, third]
  }

  private static func read(_ path: String) async throws -> Version {
    let store = try await Store.open(at: .inMemory)
    let cache = try store.cache(prefix: "items/", policy: .manifest)
    try await cache.prefill(from: .lines(at: path))
    var version: Version = [:]
    for entry in try cache.entries() {
      version[entry.key] = Item(hash: entry.hash ?? [], value: entry.value, labels: entry.labels)
    }
    try await store.close()
    return version
  }

  /// The work of a sync from one version to the next, found without the code under test.
  func difference(to number: Int) -> (added: Int, refetched: Int, deleted: Int) {
    let (old, new) = (versions[number - 1], versions[number])
    let changed = new.filter { item in old[item.key].map { $0.hash != item.value.hash } ?? false }
    return (
      new.keys.count { old[$0] == nil }, changed.count, old.keys.count { new[$0] == nil }
    )
  }
}

/// A server of one version, which counts what it is asked.
actor CollectionServer: MirrorSource {
  private let number: Int
  private let version: CollectionData.Version
  private(set) var hashes = 0
  private(set) var lists = 0
  private(set) var fetches = 0

  init(_ data: CollectionData, _ number: Int) {
    self.number = number
    version = data.versions[number]
  }

  func collectionHash() -> [UInt8] {
    hashes += 1
    return Array("version \(number)".utf8)
  }

  func list(_ add: @Sendable (MirrorItem) throws -> Void) throws {
    lists += 1
    for (key, item) in version { try add(MirrorItem(key, hash: item.hash)) }
  }

  func fetch(_ item: MirrorItem) throws -> MirrorValue<[UInt8]> {
    fetches += 1
    guard let found = version[item.key] else {
      throw Files.Failure(description: "\(item.key) was asked for, and is not in the list")
    }
    return MirrorValue(found.value, labels: found.labels, hash: found.hash)
  }
}
