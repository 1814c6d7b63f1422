internal import Tidemark
package import TidemarkEngine

/// Two versions of a program take turns over one store. The newer one knows more fields, cases and
/// facts of parts, and has other indexes and defaults; which, the seed says.
///
/// No value may come to another part than the one that it came with, and no reader may have fewer
/// objects than there are without telling which.
package struct VersionSweep {
  private static let steps = 16

  private let seed: UInt64
  private let configuration: EngineConfiguration
  private var serials = 0
  private var report = SweepReport()

  package init(seed: UInt64, configuration: EngineConfiguration = .campaign) {
    self.seed = seed
    self.configuration = configuration
  }

  package mutating func run(unless shouldStop: () -> Bool = { false }) throws -> SweepReport {
    var generator = SeededGenerator(seed: seed ^ 0x3c6e_f372)
    let disk = SimulatedFileSystem(seed: seed)
    var (older, newer) = Self.shapes(&generator)
    for _ in 0..<Self.steps where !shouldStop() {
      if generator.chance(0.5), let name = newer.extras.keys.sorted().first {
        // A default has changed, and with it what indexes say.
        newer.extras[name] = generator.int(in: 0...9)
      }
      var configuration = Store.Configuration().simulated(
        on: disk, random: SeededRandom(seed: generator.next()))
      configuration.engine = self.configuration
      configuration.encryption = self.configuration.encryption
      let store = try Store.openBlocking(at: "/store", configuration: configuration)
      try OlderProgram.$shape.withValue(older) {
        try NewerProgram.$shape.withValue(newer) {
          if generator.chance(0.5) {
            try write(store, &generator)
          } else {
            try change(store, &generator)
          }
        }
      }
      try store.blocking.close()
    }
    report.traceHash ^= disk.traceHash
    return report
  }

  private static func shapes(
    _ generator: inout SeededGenerator
  ) -> (older: VersionShape, newer: VersionShape) {
    var newer = VersionShape(cases: generator.int(in: 1...3), knowsSerials: true)
    newer.knowsIDs = generator.chance(0.7)
    var older = VersionShape(cases: generator.int(in: 1...newer.cases))
    older.knowsIDs = newer.knowsIDs && generator.chance(0.5)
    for number in 0...generator.int(in: 1...4) {
      newer.extras["x\(number)"] = number
      if generator.chance(0.5) { older.extras["x\(number)"] = number }
    }
    return (older, newer)
  }

  private func collection<Version: ProgramVersion>(
    _ store: Store, _ version: Version.Type
  ) throws -> ObjectCollection<VersionItem<Version>, String> {
    try store.collection(
      VersionItem<Version>.self, named: "items", VersionItem<Version>.schema)
  }

  /// The newer program writes some objects, and the older one adds one.
  private mutating func write(_ store: Store, _ generator: inout SeededGenerator) throws {
    let older = try collection(store, OlderProgram.self)
    var added = VersionItem<OlderProgram>(id: "\(generator.int(in: 10...12))")
    added.extras = OlderProgram.shape.extras
    var batch = WriteBatch()
    if try !older.contains(added.id) {
      try batch.put(added, in: older)
      _ = try store.blocking.write(batch)
      report.between += 1
    }
    let newer = try collection(store, NewerProgram.self)
    batch = WriteBatch()
    for _ in 0...generator.int(in: 0...2) {
      var item = VersionItem<NewerProgram>(id: "\(generator.int(in: 0...6))")
      var edit = VersionEdit<NewerProgram>(SeededGenerator(seed: generator.next()))
      edit.fill(&item, serials: &serials)
      item.title = generator.int(in: 0...3)
      item.kind = generator.int(in: 0..<NewerProgram.shape.cases)
      for name in NewerProgram.shape.extras.keys.sorted() {
        item.extras[name] = generator.int(in: 0...9)
      }
      try batch.put(item, in: newer)
    }
    _ = try store.blocking.write(batch)
    try check(newer)
  }

  /// The older program changes an object; the newer one has to find every part with its own.
  private mutating func change(_ store: Store, _ generator: inout SeededGenerator) throws {
    let newer = try collection(store, NewerProgram.self)
    let before = Dictionary(
      uniqueKeysWithValues: try newer.all().map { ($0.id, $0) })
    try check(newer)
    let older = try collection(store, OlderProgram.self)
    try check(older)
    let readable = try older.all { _ in }.map(\.id)
    guard !readable.isEmpty else { return }
    let id = readable[generator.int(in: 0..<readable.count)]
    var edit = VersionEdit<OlderProgram>(SeededGenerator(seed: generator.next()))
    guard var item = try older.get(id) else { return }
    for _ in 0..<generator.int(in: 0...3) { edit.apply(to: &item) }
    var batch = WriteBatch()
    try batch.put(item, in: older)
    _ = try store.blocking.write(batch)
    try check(older)
    let again = try collection(store, NewerProgram.self)
    try check(again)
    for item in try again.all() {
      guard let was = before[item.id] else { continue }
      if item.id != id, item != was {
        throw ScriptViolation("object \(item.id) has changed, seed \(seed)")
      }
      try check(item, was)
    }
    report.statesChecked += 1
  }

  /// Looks at whether each part has the serial that it came with, or none.
  private func check(
    _ item: VersionItem<NewerProgram>, _ was: VersionItem<NewerProgram>
  ) throws {
    for (name, value) in was.extras where OlderProgram.shape.extras[name] == nil {
      guard item.extras[name] == value else {
        throw ScriptViolation("field \(name) of object \(item.id) is lost, seed \(seed)")
      }
    }
    var seen: Set<Int> = []
    for (place, part) in item.places where part.serial >= 0 {
      guard let old = was.places.first(where: { $0.part.serial == part.serial }),
        seen.insert(part.serial).inserted
      else { throw ScriptViolation("serial \(part.serial) is there twice, seed \(seed)") }
      let knowsIDs = OlderProgram.shape.knowsIDs
      let isSame =
        knowsIDs && old.part.id != nil
        ? old.part.id == part.id : old.part.name == part.name && old.part.id == part.id
      // A part that was edited in its place is the same, unless it has become another one's equal.
      let isEdited =
        place == old.place && !["list", "set", "grid"].contains(place)
        && !was.places.contains {
          $0.part.name == part.name && (!knowsIDs || $0.part.id == part.id)
            && $0.place.prefix(5) == place.prefix(5) && $0.place != place
        }
      guard isSame || isEdited else {
        throw ScriptViolation(
          "serial \(part.serial) has gone from \(old) to \(part) at \(place), seed \(seed)")
      }
    }
  }

  /// Looks at whether every reader has all objects, or tells which it lacks.
  private func check<Version>(
    _ items: ObjectCollection<VersionItem<Version>, String>
  ) throws {
    let all = try Set(items.ids())
    func expect(
      _ reader: String, _ read: (@escaping (TidemarkError) -> Void) throws -> [String]
    ) throws {
      var told: [String] = []
      let found = try read { told.append($0.object?.id ?? "") }
      guard Set(found + told) == all, found.count + told.count == all.count else {
        throw ScriptViolation(
          "\(reader) has \(found.count) objects and tells of \(told.count), of \(all.count), "
            + "seed \(seed)")
      }
    }
    try expect("all") { try items.all(unreadable: $0).map(\.id) }
    try expect("find") { try items.find(unreadable: $0).map(\.id) }
    try expect("an index") { try items.find(\.title >= 0, unreadable: $0).map(\.id) }
    try expect("an order") {
      try items.ids(where: .everything, sort: [.ascending(\.title)], unreadable: $0)
    }
    var unreadable = 0
    let readable = try items.all { _ in unreadable += 1 }
    // Another version may have indexed what this one cannot read, and so cannot audit.
    if unreadable == 0, let wrong = try items.core.firstDisagreement() {
      throw ScriptViolation("\(wrong), seed \(seed)")
    }
    for item in readable {
      for (name, value) in item.extras {
        let found = try items.find(.index("extras", equals: "\(name) \(value)")) { _ in }
        guard found.contains(item) else {
          throw ScriptViolation("an index lacks \(name) of object \(item.id), seed \(seed)")
        }
      }
    }
  }
}
