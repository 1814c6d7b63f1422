internal import Tidemark
package import TidemarkEngine

/// Writes objects of a collection with indexes, takes the disk as a crash at one call after the
/// other would find it, and looks at whether indexes and objects agree.
///
/// Programs come and go in between: some do not know the indexes, others declare them with another
/// version, and the store is compacted, which drops history. A projection of the objects' changes
/// takes them up late, and must have had each once.
package struct IndexSweep {
  /// An object: what it says, and how long it is.
  struct Item: Codable, Identifiable, Equatable, Sendable {
    var id: String
    var group: Int
    var name: String
    var tags: [Int]
    var slug: String?
  }

  private static let steps = 24
  /// The beginning of the keys of objects that a program without the indexes has written.
  private static let marks = Array("\0tidemark/#d".utf8)

  private let seed: UInt64
  private let configuration: EngineConfiguration

  package init(seed: UInt64, configuration: EngineConfiguration = .campaign) {
    self.seed = seed
    self.configuration = configuration
  }

  /// Crashes at the calls: kills the process, and cuts the power.
  /// - Parameters:
  ///   - step: only every so many calls.
  package func run(
    every step: Int = 1, unless shouldStop: () -> Bool = { false }
  ) throws -> SweepReport {
    var report = SweepReport()
    let disk = SimulatedFileSystem(seed: seed)
    disk.keepsCrashPoints = true
    var generator = SeededGenerator(seed: seed ^ 0xbb67_ae85)
    var version: UInt32 = 1
    var store = try open(disk, chance: generator.next())
    var items = try collection(store, version)
    var projection = try Self.projection(store)
    var changes = ChangeRecord()
    for _ in 0..<Self.steps where !shouldStop() {
      let before = version
      switch generator.int(in: 0...9) {
      case 0:
        try store.blocking.close()
        if generator.chance(0.5) { version += 1 }
        store = try open(disk, chance: generator.next())
        items = try collection(store, version)
        projection = try Self.projection(store)
      case 1:
        // A program that has never heard of the indexes.
        try store.blocking.close()
        store = try open(disk, chance: generator.next())
        try write(
          store, try store.collection(Item.self, named: "items"), &generator, withSlugs: false)
        try changes.note(store)
        try store.blocking.close()
        store = try open(disk, chance: generator.next())
        items = try collection(store, version)
        projection = try Self.projection(store)
      case 2: _ = try store.blocking.compact(dropHistory: generator.chance(0.5))
      default: try write(store, items, &generator)
      }
      try changes.note(store)
      if generator.chance(0.3) { while try projection.step() {} }
      if generator.chance(0.3) { try projection.writeCheckpoint() }
      try Self.check(items)
      report.statesChecked += 1
      for point in disk.takeCrashPoints() {
        report.calls += 1
        guard report.calls % step == 0, !shouldStop() else { continue }
        let survivals: [Survival?] = [nil, .random(seed: generator.next()), .keepOldest]
        for survival in survivals {
          try crash(point, survival, before...version, changes, generator.next(), &report)
        }
      }
    }
    try store.blocking.close()
    report.injected = disk.injected
    report.traceHash = report.traceHash ^ disk.traceHash
    return report
  }

  /// - Parameter chance: another one for each opening, since no two may give out the same epoch.
  private func open(_ disk: SimulatedFileSystem, chance: UInt64) throws -> Store {
    var store = Store.Configuration().simulated(on: disk, random: SeededRandom(seed: chance))
    store.engine = configuration
    store.encryption = configuration.encryption
    return try Store.openBlocking(at: "/store", configuration: store)
  }

  private func collection(
    _ store: Store, _ version: UInt32
  ) throws -> ObjectCollection<Item, String> {
    try store.collection(
      Item.self, named: "items",
      CollectionSchema(indexes: [
        ObjectIndex("group", version: version, .ascending(\.group), .folded(\.name)),
        ObjectIndex("tags", each: \.tags),
        ObjectIndex("slug", unique: true, computed: { $0.slug.map { [$0] } ?? [] }),
      ]))
  }

  /// Counts how often each object was put, and a thousand for each delete.
  private static func projection(_ store: Store) throws -> Projection<[String: Int]> {
    try store.projection(named: "changes", initial: [:], prefix: "items/", ChangeRecord.count)
  }

  private func write(
    _ store: Store, _ items: ObjectCollection<Item, String>, _ generator: inout SeededGenerator,
    withSlugs: Bool = true
  ) throws {
    var batch = WriteBatch()
    for _ in 0...generator.int(in: 0...5) {
      let id = "\(generator.int(in: 0...12))"
      if generator.chance(0.25) {
        try batch.delete(id, in: items)
        continue
      }
      let item = Item(
        id: id, group: generator.int(in: 0...3), name: ["É", "e", "F"][generator.int(in: 0...2)],
        tags: (0..<generator.int(in: 0...3)).map { _ in generator.int(in: 0...4) },
        slug: withSlugs && generator.chance(0.4) ? "\(generator.int(in: 0...6))" : nil)
      try batch.put(item, in: items)
    }
    do { try store.blocking.write(batch) } catch {
      guard error.code == .notUnique else { throw error }
    }
  }

  private func crash(
    _ point: DiskSnapshot, _ survival: Survival?, _ versions: ClosedRange<UInt32>,
    _ changes: ChangeRecord, _ seed: UInt64, _ report: inout SweepReport
  ) throws {
    let disk =
      survival.map { SimulatedFileSystem(point, keeping: $0, seed: seed) }
      ?? SimulatedFileSystem(killedAt: point, seed: seed)
    report.crashes += 1
    do {
      let store = try open(disk, chance: seed)
      // Later writes may have the sequences of what was lost.
      let last = store.lastSequence
      report.between += try store.engine.derivedKeys(Self.marks).count
      let projection = try Self.projection(store)
      while try projection.step() {}
      try changes.check(projection.state, through: last)
      // The program may come back with its newest version, or an older one.
      let items = try collection(store, seed % 2 == 0 ? versions.upperBound : versions.lowerBound)
      try Self.check(items)
      var generator = SeededGenerator(seed: seed)
      try write(store, items, &generator)
      try Self.check(items)
      try store.blocking.close()
      report.statesChecked += 2
      report.traceHash = (report.traceHash ^ disk.traceHash) &* 0x9e37_79b9_7f4a_7c15
    } catch {
      let what = (error as? ScriptViolation)?.description ?? "unexpected error \(error)"
      let name = survival.map { "\($0)" } ?? "kill"
      throw ScriptViolation("crash at call \(report.calls), \(name), seed \(self.seed): \(what)")
    }
  }

  /// Looks at whether each row is that of an object, and each object has all its rows.
  static func check(_ items: ObjectCollection<Item, String>) throws {
    guard try items.indexes.allSatisfy(\.isComplete) else {
      throw ScriptViolation("an index is not complete though nobody builds it")
    }
    if let wrong = try items.core.firstDisagreement() { throw ScriptViolation(wrong) }
    var slugs: Set<String> = []
    for item in try items.all() {
      if let slug = item.slug, !slugs.insert(slug).inserted {
        throw ScriptViolation("two objects have slug \(slug)")
      }
    }
    for group in 0...3 {
      let found = try items.find(\.group == group)
      let wanted = try items.all().filter { $0.group == group }
      guard found == wanted else {
        throw ScriptViolation(
          "group \(group) has \(found.count) objects, and \(wanted.count) say so")
      }
    }
  }
}

/// The changes of objects that were committed, by sequence: a projection must have each once.
private struct ChangeRecord {
  private var states: [(sequence: UInt64, counts: [String: Int])] = [(0, [:])]
  private var read: UInt64?

  static func count(_ state: inout [String: Int], _ entry: Entry) {
    state[entry.key.text, default: 0] += entry.kind == .delete ? 1_000 : 1
  }

  /// Takes up what was committed since the last look: as yet no compaction has dropped any of it.
  mutating func note(_ store: Store) throws {
    var counts = states.last?.counts ?? [:]
    var log = try store.entries(since: read)
    while let entry = try log.next() {
      guard entry.key.text.hasPrefix("items/") else { continue }
      Self.count(&counts, entry)
      states.append((entry.sequence, counts))
    }
    read = store.lastSequence
  }

  func check(_ state: [String: Int], through sequence: UInt64) throws {
    guard let expected = states.last(where: { $0.sequence <= sequence })?.counts,
      state != expected
    else { return }
    throw ScriptViolation("a projection has \(state), and the changes are \(expected)")
  }
}
