package import TidemarkEngine

/// A store that does not do what the model does.
package struct ScriptViolation: Error, CustomStringConvertible {
  package var description: String

  package init(_ description: String) { self.description = description }
}

/// Carries a script out on an engine over a simulated disk and on a model, and compares.
package struct ScriptRunner {
  package private(set) var disk: SimulatedFileSystem
  package private(set) var clock: ManualClock
  package private(set) var random: SeededRandom
  package var configuration: EngineConfiguration
  package private(set) var model = ModelStore()
  package private(set) var engine: Engine?
  /// After a crash the store must reach at least this sequence: after a power cut what was
  /// durable, after a kill what was buffered.
  private var durable: UInt64 = 0
  private var buffered: UInt64 = 0
  private var durability = Durability.buffered
  /// Views below this sequence are gone.
  private(set) var viewableFrom: UInt64 = 0
  private var held: [HeldView] = []

  private struct HeldView {
    var view: EngineView
    var rows: [ModelRow]
    /// Keys that are not compared.
    var unsure: Set<[UInt8]>
  }

  /// How many states were compared.
  package private(set) var statesChecked = 0
  /// Whether the engine said that an outcome is unknown: it takes no more writes then.
  package private(set) var isPoisoned = false
  package let path: String

  /// - Parameters:
  ///   - path: the store's directory.
  ///   - model: what the store holds already.
  package init(
    disk: SimulatedFileSystem, seed: UInt64, configuration: EngineConfiguration = .campaign,
    at path: String = "/store", model: ModelStore = ModelStore()
  ) {
    self.disk = disk
    self.path = path
    self.model = model
    clock = ManualClock()
    random = SeededRandom(seed: seed)
    self.configuration = configuration
  }

  /// Opens the store, which is created when missing.
  package mutating func open() throws {
    engine = try Engine.open(
      path, configuration: configuration,
      environment: EngineEnvironment(fileSystem: disk, clock: clock, random: random))
    isPoisoned = false
  }

  /// The same program on another disk, where a crash has left what this one wrote.
  /// - Parameter model: what it had written, or was just writing.
  func afterCrash(
    on disk: SimulatedFileSystem, model: ModelStore, seed: UInt64
  ) -> ScriptRunner {
    var copy = self
    copy.forget()
    copy.disk = disk
    copy.clock = ManualClock(
      clock.now(), monotonicNanoseconds: clock.monotonicNanoseconds())
    copy.random = SeededRandom(seed: seed)
    copy.model = model
    copy.statesChecked = 0
    return copy
  }

  /// Lets go of the store without closing it, as a crash does.
  package mutating func forget() {
    held.removeAll()
    engine = nil
  }

  /// Closes the store as far as that goes, and lets go of it.
  package mutating func abandon() {
    held.removeAll()
    if let engine { try? engine.close() }
    engine = nil
  }

  /// Carries one step out.
  package mutating func run(_ step: ScriptStep) throws {
    switch step {
    case .write(let write): try self.write([write])
    case .batch(let writes): try self.write(writes)
    case .compareAndPut(let write, let expectation): try compareAndPut(write, expectation)
    case .undo(let point): try apply(model.undo(since: sequence(point)))
    case .clear: try apply(model.state().keys.sortedBytes().map { ModelEntry(.delete, $0) })
    case .flush, .snapshot, .compact, .compactDroppingHistory: try maintain(step)
    case .loseRuns, .closeAndReopen, .kill, .powerCut: try reopen(step)
    case .durability(let wanted): durability = wanted.durability
    case .advanceClock(let milliseconds): clock.advance(by: .milliseconds(milliseconds))
    case .jumpClock(let seconds): clock.jump(by: .seconds(seconds))
    default: try look(step)
    }
  }

  func sequence(_ point: ScriptPoint) -> UInt64 {
    point.sequence(from: viewableFrom, to: model.lastSequence)
  }

  func opened() throws -> Engine {
    guard let engine else { throw ScriptViolation("the store is not open") }
    return engine
  }

  // MARK: Writing

  private mutating func write(_ writes: [ScriptWrite]) throws { try apply(writes.map(\.entry)) }

  /// Commits entries and enters them into the model, unless the engine says that it did not.
  private mutating func apply(
    _ entries: [ModelEntry], condition: OperationBatch.Condition? = nil
  ) throws {
    guard !entries.isEmpty else { return }
    let batch = try Self.batch(entries, condition: condition)
    let before = model.lastSequence
    model.write(entries)
    do {
      let result = try opened().commit(batch, durability: durability)
      guard result.applied == Int(model.lastSequence - before) else {
        throw ScriptViolation(
          "\(result.applied) entries made instead of \(model.lastSequence - before)")
      }
    } catch let error as TidemarkError {
      try settle(error, before: before)
      throw error
    }
    acknowledge(durability)
  }

  /// Takes an outcome as the error tells it: not committed, unless it is said to be unknown.
  private mutating func settle(_ error: TidemarkError, before: UInt64) throws {
    let wanted = model.lastSequence
    let reached = try opened().reader.lastSequence
    note(error)
    // Readers see either all of a batch whose outcome is unknown or nothing of it.
    if reached != wanted || error.code != .unknownOutcome { model.truncate(after: before) }
    guard reached == model.lastSequence else {
      throw ScriptViolation(
        "sequence \(reached) instead of \(model.lastSequence) after the error \(error.code)")
    }
  }

  private mutating func note(_ error: TidemarkError) {
    if error.code == .unknownOutcome || error.code == .poisoned { isPoisoned = true }
  }

  private mutating func acknowledge(_ durability: Durability) {
    if durability != .async { buffered = model.lastSequence }
    if durability == .durable { durable = model.lastSequence }
  }

  private static func batch(
    _ entries: [ModelEntry], condition: OperationBatch.Condition?
  ) throws -> OperationBatch {
    var batch = OperationBatch()
    batch.mayCoverOwned = true
    for entry in entries {
      let labels = try batch.addLabelSet(entry.labels.sortedBytes())
      var attributes = EntryAttributes()
      if !entry.hash.isEmpty { attributes.hash = entry.hash }
      let kind: EntryKind =
        switch entry.operation {
        case .put, .cache: .put
        case .delete: .delete
        case .touch: .touch
        case .evict: .evict
        }
      guard kind != .evict else {
        let key = entry.key
        try batch.addEviction(of: key.rawSpan, at: 0)
        continue
      }
      if entry.operation == .cache { attributes.entryClass = .cache }
      let key = entry.key
      let value = entry.value
      try batch.add(
        kind, key: key.rawSpan, value: kind == .put ? value.rawSpan : nil, labelSet: labels,
        attributes: attributes, condition: condition.map { batch.addCondition($0) } ?? -1)
    }
    return batch
  }

  private mutating func compareAndPut(
    _ write: ScriptWrite, _ expectation: ScriptExpectation
  ) throws {
    let row = model.row(forKey: write.key.bytes)
    let condition: OperationBatch.Condition
    let holds: Bool
    switch expectation {
    case .absent:
      condition = .absent
      holds = row == nil
    case .current:
      condition = .sequence(row?.sequence ?? 1 << 40)
      holds = row != nil
    case .outdated:
      condition = .sequence((row?.sequence ?? 0) + 1_000_000)
      holds = false
    }
    do {
      try apply([write.entry], condition: condition)
      if !holds { throw ScriptViolation("a compare-and-put went through against its condition") }
    } catch let error as TidemarkError where error.code == .conflict {
      if holds { throw ScriptViolation("a compare-and-put failed although its condition held") }
    }
  }

  // MARK: Upkeep

  private mutating func maintain(_ step: ScriptStep) throws {
    let engine = try opened()
    do throws(TidemarkError) {
      switch step {
      case .flush:
        try engine.writer.flush()
        buffered = model.lastSequence
        durable = model.lastSequence
      case .snapshot: try engine.checkpointer.writeRun()
      case .compact: try engine.compact()
      default:
        // A compaction that fails may have given history up before.
        defer { raiseViewableFrom(engine) }
        try engine.compact(CompactionOptions(dropHistory: true))
        // Held views keep their history; without any, all of it goes.
        if held.isEmpty { model.dropHistory() }
        viewableFrom = max(viewableFrom, model.historyFrom)
      }
    } catch {
      note(error)
      throw error
    }
    for held in held { try check(held) }
  }

  private mutating func raiseViewableFrom(_ engine: Engine) {
    guard let from = try? engine.reader.bounds().historyFrom, from > 1 else { return }
    viewableFrom = max(viewableFrom, from)
  }

  private mutating func reopen(_ step: ScriptStep) throws {
    held.removeAll()
    switch step {
    case .kill:
      disk.kill()
      try recover(atLeast: acknowledged(powerCut: false))
    case .powerCut(let seed):
      disk.powerCut()
      disk.restart(keeping: .random(seed: seed))
      try recover(atLeast: durable)
    default:
      let closing = try opened()
      engine = nil
      try closing.close()
      buffered = model.lastSequence
      durable = model.lastSequence
      try checkWithoutSomeRun()
      if case .loseRuns = step {
        for file in disk.files() where file.hasSuffix(".idx") { disk.erase(file) }
      }
      try open()
      try checkAll()
    }
  }

  /// Opens after a crash and checks that what is there is a prefix of what was written, in
  /// whole batches, and holds everything that was acknowledged.
  package mutating func recover(atLeast acknowledged: UInt64) throws {
    held.removeAll()
    engine = nil
    disk.restart()
    try open()
    let reached = try opened().reader.lastSequence
    guard reached >= acknowledged else {
      throw ScriptViolation("only \(reached) is left, although \(acknowledged) was acknowledged")
    }
    guard model.batchEnds.contains(reached) else {
      throw ScriptViolation("sequence \(reached) is inside a batch")
    }
    model.truncate(after: reached)
    raiseViewableFrom(try opened())
    durable = reached
    buffered = reached
    try checkAll()
  }

  /// The least sequence that must survive a crash of this kind now.
  package func acknowledged(powerCut: Bool) -> UInt64 {
    // Where a failed sync takes the kernel's copy back, a kill leaves no more than a power cut.
    powerCut || disk.injected[.syncRevertsPages] > 0 ? durable : buffered
  }

  // MARK: Views that stay open

  mutating func hold(_ point: ScriptPoint) throws {
    let sequence = sequence(point)
    let rows = model.rows(at: sequence)
    held.append(
      HeldView(
        view: try opened().reader.view(at: sequence), rows: rows, unsure: unsureKeys(at: sequence)))
  }

  mutating func release() throws {
    guard !held.isEmpty else { return }
    try check(held.removeFirst())
    statesChecked += 1
  }

  private func check(_ held: HeldView) throws {
    let rows = try rows(ModelQuery(), in: held.view).filter { !held.unsure.contains($0.key) }
    let expected = held.rows.filter { !held.unsure.contains($0.key) }
    guard rows.map(\.key) == expected.map(\.key),
      zip(rows, expected).allSatisfy({ $0.holdsTheSame(as: $1) })
    else { throw ScriptViolation("a view held at \(held.view.sequence) has changed") }
  }

  /// Keys of which a past state need not be known: replaced values that a server has are not kept.
  func unsureKeys(at sequence: UInt64?) -> Set<[UInt8]> {
    sequence.map { $0 < model.lastSequence } ?? false ? model.cachedKeys : []
  }

  /// A run of the index may be lost: those beneath must not bring deleted keys back.
  private func checkWithoutSomeRun() throws {
    let runs = disk.files().filter { $0.contains(path.dropFirst() + "/index/") }.sorted()
    guard runs.count > 1 else { return }
    let copy = SimulatedFileSystem(killedAt: disk.snapshot(), seed: 0)
    copy.erase(runs[runs.count - 1 - Int(model.lastSequence % UInt64(runs.count))])
    var runner = afterCrash(on: copy, model: model, seed: 0)
    defer { runner.abandon() }
    try runner.open()
    try runner.checkAll()
  }

  mutating func countState() { statesChecked += 1 }
}

extension EngineConfiguration {
  /// Small segments, so that short scripts meet everything.
  package static var campaign: EngineConfiguration {
    var configuration = EngineConfiguration()
    configuration.doesBackgroundWorkInline = true
    configuration.segmentBytes = 96 << 10
    configuration.growthBytes = 8 << 10
    configuration.dictionaryFromBytes = 16 << 10
    configuration.runEveryBytes = 256 << 10
    configuration.smallRunKeys = 2
    configuration.cacheBytes = 64 << 10
    configuration.compactsByItself = true
    configuration.compactionWindowBytes = 8 << 10
    return configuration
  }

  /// The same with or without encryption.
  /// - Throws: ``ScriptViolation`` when the build has no encryption.
  static func campaign(encrypted: Bool) throws -> EngineConfiguration {
    var configuration = EngineConfiguration.campaign
    guard encrypted else { return configuration }
    guard Encryption.isAvailable else { throw ScriptViolation("this build cannot encrypt") }
    let key = (0..<32).map { UInt8(truncatingIfNeeded: 31 + $0 &* 7) }
    configuration.encryption = .key { id in
      id.map { $0 == Encryption.id(ofKey: key) } ?? true ? key : nil
    }
    return configuration
  }
}

extension ScriptDurability {
  var durability: Durability {
    switch self {
    case .async: .async
    case .buffered: .buffered
    case .durable: .durable
    }
  }
}

extension Sequence where Element == [UInt8] {
  func sortedBytes() -> [[UInt8]] { sorted { $0.lexicographicallyPrecedes($1) } }
}
