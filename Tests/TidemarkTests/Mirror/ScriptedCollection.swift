import Tidemark
import TidemarkEngine

/// A collection in memory, as a server would keep it, that counts what it is asked.
actor ScriptedCollection: MirrorSource {
  struct Failure: Error {}

  private var items: [Key: (version: Int, labels: [EntryLabel])] = [:]
  private var broken: Set<Key> = []
  private var isHeld = false
  private var held: [CheckedContinuation<Void, Never>] = []
  private var listsBackwards = false
  private var aliases: [Int: [UInt8]] = [:]
  private var before: (@Sendable (Key) async throws -> Void)?

  private(set) var hashes = 0
  private(set) var lists = 0
  private(set) var fetched: [Key] = []
  private(set) var running = 0
  private(set) var mostRunning = 0

  init(_ keys: [Key] = []) {
    for key in keys { items[key] = (1, []) }
  }

  func set(_ key: Key, _ version: Int, labels: [EntryLabel] = []) { items[key] = (version, labels) }

  func remove(_ key: Key) { items[key] = nil }

  func fail(_ keys: Set<Key>) { broken = keys }

  func listBackwards() { listsBackwards = true }

  /// Has items of some versions listed with other hashes.
  func listHashes(as hashes: [Int: [UInt8]]) { aliases = hashes }

  /// Has something done before each fetch.
  func before(_ body: @escaping @Sendable (Key) async throws -> Void) { before = body }

  func forgetCounts() {
    hashes = 0
    lists = 0
    fetched = []
  }

  /// Holds all fetches, whether or not they are called off.
  func hold() { isHeld = true }

  func release() {
    isHeld = false
    for continuation in held { continuation.resume() }
    held = []
  }

  // MARK: Answers

  func collectionHash() async throws -> [UInt8] {
    hashes += 1
    let text = items.keys.sorted().map { "\($0) \(items[$0]?.version ?? 0)" }.joined(separator: ",")
    return SHA256.hash(Array(text.utf8).rawSpan)
  }

  func list(_ add: @Sendable (MirrorItem) throws -> Void) async throws {
    lists += 1
    let keys = listsBackwards ? items.keys.sorted(by: >) : items.keys.sorted()
    for key in keys { try add(MirrorItem(key, hash: hash(items[key]?.version ?? 0))) }
  }

  func fetch(_ item: MirrorItem) async throws -> MirrorValue<[UInt8]> {
    running += 1
    defer { running -= 1 }
    mostRunning = max(mostRunning, running)
    if let before { try await before(item.key) }
    if isHeld { await withCheckedContinuation { held.append($0) } }
    fetched.append(item.key)
    guard !broken.contains(item.key), let found = items[item.key] else { throw Failure() }
    return MirrorValue(
      Array("\(item.key) \(found.version)".utf8), labels: found.labels,
      hash: hash(found.version))
  }

  private func hash(_ version: Int) -> [UInt8] { aliases[version] ?? [UInt8(version)] }
}

extension Cache<[UInt8]> {
  /// Everything in it as text, without what the user owns.
  func texts() throws -> [String: String] {
    try entries().filter { !$0.isOwned }.reduce(into: [:]) { $0[$1.key.text] = $1.value.text }
  }
}

extension CacheView<[UInt8]> {
  func texts() throws -> [String: String] {
    try keys().reduce(into: [:]) { $0[$1.text] = try value(forKey: $1)?.text }
  }
}
