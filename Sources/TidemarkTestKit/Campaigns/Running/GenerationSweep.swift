internal import Tidemark
package import TidemarkEngine

/// Brings a collection up to date again and again, takes the disk as a crash at one call after the
/// other would find it, and looks at whether a reader could meet a mixture of two generations.
///
/// The collection's items are numbers, and their values and hashes say in which generation they
/// last changed, so that one look at a cache says which generation it shows.
package struct GenerationSweep {
  /// One generation: the change of each item's value that it has.
  private typealias Generation = [Int: Int]

  private static let prefix = "items/"
  private static let generationCount = 4

  private let seed: UInt64
  private let configuration: EngineConfiguration
  private let generations: [Generation]
  /// Items that the user has written over before the first sync.
  private let owned: Set<Int>

  package init(seed: UInt64, configuration: EngineConfiguration = .campaign) {
    self.seed = seed
    self.configuration = configuration
    var generator = SeededGenerator(seed: seed)
    let most = generator.int(in: 4...40)
    var generation: Generation = [:]
    var generations: [Generation] = [[:]]
    for number in 1...Self.generationCount {
      for item in 0..<most {
        if generator.chance(number == 1 ? 0.8 : 0.25) { generation[item] = number }
        if number > 1, generator.chance(0.1) { generation[item] = nil }
      }
      generations.append(generation)
    }
    self.generations = generations
    owned = Set((0..<most).filter { _ in generator.chance(0.1) })
  }

  // MARK: The program

  /// A program at a crash: what it had been told by then.
  private struct Moment {
    /// The generation whose switch was acknowledged last.
    var switched = 0
    /// The one that is being brought here.
    var next = 1
    /// Items of it that were acknowledged as staged.
    var staged = 0
    /// Whether the user's own values were acknowledged as durable.
    var isPrepared = false
  }

  /// Crashes at the calls: kills the process once, and cuts the power.
  /// - Parameters:
  ///   - step: only every so many calls.
  package func run(
    every step: Int = 1, unless shouldStop: () -> Bool = { false }
  ) throws -> SweepReport {
    var report = SweepReport()
    let disk = SimulatedFileSystem(seed: seed)
    disk.keepsCrashPoints = true
    var generator = SeededGenerator(seed: seed ^ 0x6a09_e667)
    var moment = Moment()
    func crashes(_ before: Moment) throws {
      for point in disk.takeCrashPoints() {
        report.calls += 1
        guard report.calls % step == 0, !shouldStop() else { continue }
        let survivals: [Survival?] = [nil, .random(seed: generator.next()), .keepOldest]
        for survival in survivals {
          try crash(point, survival, before, generator.next(), &report)
        }
      }
    }
    let store = try open(disk)
    var batch = WriteBatch()
    for item in owned.sorted() { try batch.put(Self.prefix + Self.key(item), "mine") }
    _ = try store.blocking.write(batch, durability: .durable)
    try crashes(moment)
    moment.isPrepared = true
    let cache = try store.cache(prefix: Self.prefix, policy: .manifest)
    for number in 1..<generations.count where !shouldStop() {
      moment.next = number
      moment.staged = 0
      let reader = try cache.view()
      var update = try self.update(cache, to: number)
      let missing = update.missing
      for start in stride(from: 0, to: missing.count, by: 3) {
        let items = fetched(Array(missing[start..<min(start + 3, missing.count)]), of: update)
        _ = try store.blocking.write(try update.staging(items))
        update.noteStaged(items)
        try crashes(moment)
        moment.staged += items.count
      }
      for batch in try update.switching() { _ = try store.blocking.write(batch) }
      try crashes(moment)
      try check(reader: reader, shows: number - 1)
      moment.switched = number
      guard try shown(cache) == number else {
        throw ScriptViolation("the cache does not show generation \(number) after the switch")
      }
      report.statesChecked += 2
    }
    try store.blocking.close()
    try crashes(moment)
    report.injected = disk.injected
    report.traceHash = report.traceHash ^ disk.traceHash
    return report
  }

  private func open(_ disk: SimulatedFileSystem) throws -> Store {
    var store = Store.Configuration().simulated(
      on: disk, random: SeededRandom(seed: seed))
    store.engine = configuration
    store.encryption = configuration.encryption
    return try Store.openBlocking(at: "/store", configuration: store)
  }

  private func update(_ cache: Cache<[UInt8]>, to number: Int) throws -> CollectionUpdate {
    var table = ItemTable(prefixLength: Self.prefix.utf8.count)
    for (item, change) in generations[number].sorted(by: { $0.key < $1.key }) {
      let key = Array(Self.key(item).utf8)
      try table.add(key.rawSpan, hash: [UInt8(change)].rawSpan)
    }
    return try CollectionUpdate(cache, to: table, CollectionState(hash: [UInt8(number)]))
  }

  private func fetched(
    _ numbers: [Int], of update: CollectionUpdate
  ) -> [CollectionUpdate.FetchedItem] {
    numbers.map { index in
      let item = update.items.item(index)
      return CollectionUpdate.FetchedItem(
        index: index, value: Self.value(item.key.text, Int(item.hash.first ?? 0)))
    }
  }

  private static func key(_ item: Int) -> String { "item \(100 + item)" }

  private static func value(_ key: String, _ change: Int) -> [UInt8] {
    Array("\(key), change \(change)".utf8)
  }

  // MARK: Crashes

  private func crash(
    _ point: DiskSnapshot, _ survival: Survival?, _ moment: Moment, _ seed: UInt64,
    _ report: inout SweepReport
  ) throws {
    let disk =
      survival.map { SimulatedFileSystem(point, keeping: $0, seed: seed) }
      ?? SimulatedFileSystem(killedAt: point, seed: seed)
    report.crashes += 1
    do {
      let store = try open(disk)
      // Where the user's values may be lost, their keys are the collection's.
      guard moment.isPrepared else { return try store.blocking.close() }
      let cache = try store.cache(prefix: Self.prefix, policy: .manifest)
      let shown = try shown(cache)
      let least = survival == nil ? moment.switched : 0
      guard (least...moment.next).contains(shown) else {
        throw ScriptViolation(
          "generation \(shown) is shown, and \(moment.switched) was switched to")
      }
      try checkOwned(store)
      var update = try self.update(cache, to: moment.next)
      let found = fetchedBefore(update)
      if survival == nil, shown < moment.next, found < moment.staged {
        throw ScriptViolation("\(found) items are staged, and \(moment.staged) were before")
      }
      report.between += found
      let items = fetched(update.missing, of: update)
      _ = try store.blocking.write(try update.staging(items))
      update.noteStaged(items)
      for batch in try update.switching() { _ = try store.blocking.write(batch) }
      guard try self.shown(cache) == moment.next else {
        throw ScriptViolation("the sync after the crash has not switched")
      }
      guard try store.count(EntryQuery(prefix: "\0tidemark/staged/")) == 0 else {
        throw ScriptViolation("items are staged after the switch")
      }
      try store.blocking.close()
      report.statesChecked += 2
      report.traceHash = (report.traceHash ^ disk.traceHash) &* 0x9e37_79b9_7f4a_7c15
    } catch {
      let what = (error as? ScriptViolation)?.description ?? "unexpected error \(error)"
      let name = survival.map { "\($0)" } ?? "kill"
      throw ScriptViolation("crash at call \(report.calls), \(name), seed \(self.seed): \(what)")
    }
  }

  private func fetchedBefore(_ update: CollectionUpdate) -> Int {
    update.items.count - update.missing.count - update.settled
  }

  // MARK: Readers

  /// The generation that a cache shows.
  /// - Throws: ``ScriptViolation`` where that is a mixture.
  private func shown(_ cache: Cache<[UInt8]>) throws -> Int {
    let number = try cache.manifest.map { Int($0.collectionHash.first ?? 0) } ?? 0
    try check(reader: try cache.view(), shows: number)
    return number
  }

  private func check(reader: CacheView<[UInt8]>, shows number: Int) throws {
    var found: [String: [UInt8]] = [:]
    for key in try reader.keys() {
      let value = try reader.value(forKey: key)
      if value != Array("mine".utf8) { found[key.text] = value }
    }
    var expected: [String: [UInt8]] = [:]
    for (item, change) in generations[number] where !owned.contains(item) {
      expected[Self.key(item)] = Self.value(Self.key(item), change)
    }
    guard found == expected else {
      throw ScriptViolation(
        "\(found.count) items are no generation \(number), which has \(expected.count): "
          + "a reader meets a mixture")
    }
  }

  private func checkOwned(_ store: Store) throws {
    for item in owned {
      guard try store.text(forKey: Self.prefix + Self.key(item)) == "mine" else {
        throw ScriptViolation("a value of the user's is gone")
      }
    }
  }
}
