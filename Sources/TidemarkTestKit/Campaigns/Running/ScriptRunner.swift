package import TidemarkEngine

/// A store that does not do what the model does.
package struct ScriptViolation: Error, CustomStringConvertible {
  package var description: String

  package init(_ description: String) { self.description = description }
}

/// Carries a script out on an engine over a simulated disk and on a model, and compares.
package struct ScriptRunner {
  package let disk: SimulatedFileSystem
  package let clock: ManualClock
  package let random: SeededRandom
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
  private var held: [(view: EngineView, rows: [ModelRow])] = []
  /// How many states were compared.
  package private(set) var statesChecked = 0
  package let path = "/store"

  package init(
    disk: SimulatedFileSystem, seed: UInt64, configuration: EngineConfiguration = .campaign
  ) {
    self.disk = disk
    clock = ManualClock()
    random = SeededRandom(seed: seed)
    self.configuration = configuration
  }

  /// Opens the store, which is created when missing.
  package mutating func open() throws {
    engine = try Engine.open(
      path, configuration: configuration,
      environment: EngineEnvironment(fileSystem: disk, clock: clock, random: random))
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
    case .loseImages, .closeAndReopen, .kill, .powerCut: try reopen(step)
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
    } catch let error as TidemarkError where Self.isNotCommitted(error) {
      model.truncate(after: before)
      throw error
    }
    acknowledge(durability)
  }

  private mutating func acknowledge(_ durability: Durability) {
    if durability != .async { buffered = model.lastSequence }
    if durability == .durable { durable = model.lastSequence }
  }

  static func isNotCommitted(_ error: TidemarkError) -> Bool {
    switch error.code {
    case .conflict, .noSpace, .invalidArgument, .limitExceeded, .readOnly, .poisoned: true
    default: false
    }
  }

  private static func batch(
    _ entries: [ModelEntry], condition: OperationBatch.Condition?
  ) throws -> OperationBatch {
    var batch = OperationBatch()
    for entry in entries {
      let labels = try batch.addLabelSet(entry.labels.sortedBytes())
      var attributes = EntryAttributes()
      if !entry.hash.isEmpty { attributes.hash = entry.hash }
      let kind: EntryKind =
        switch entry.operation {
        case .put: .put
        case .delete: .delete
        case .touch: .touch
        }
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
    switch step {
    case .flush:
      try engine.flush()
      buffered = model.lastSequence
      durable = model.lastSequence
    case .snapshot: try engine.writeImage()
    case .compact: try engine.compact()
    default:
      try engine.compact(CompactionOptions(dropHistory: true))
      // Held views keep their history; without any, all of it goes.
      if held.isEmpty { model.dropHistory() }
      viewableFrom = max(model.historyFrom, try engine.status().historyFrom)
    }
  }

  private mutating func reopen(_ step: ScriptStep) throws {
    held.removeAll()
    switch step {
    case .kill:
      disk.kill()
      try recover(atLeast: buffered)
    case .powerCut(let seed):
      disk.powerCut()
      disk.restart(keeping: .random(seed: seed))
      try recover(atLeast: durable)
    default:
      try opened().close()
      engine = nil
      if case .loseImages = step {
        for file in disk.files() where file.hasSuffix(".idx") { try disk.remove(file) }
      }
      try open()
      buffered = model.lastSequence
      durable = model.lastSequence
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
    let reached = try opened().lastSequence
    guard reached >= acknowledged else {
      throw ScriptViolation("only \(reached) is left, although \(acknowledged) was acknowledged")
    }
    guard model.batchEnds.contains(reached) else {
      throw ScriptViolation("sequence \(reached) is inside a batch")
    }
    model.truncate(after: reached)
    let historyFrom = try opened().status().historyFrom
    if historyFrom > 1 { viewableFrom = max(viewableFrom, historyFrom) }
    durable = reached
    buffered = reached
    try checkAll()
  }

  /// The least sequence that must survive a crash of this kind now.
  package func acknowledged(powerCut: Bool) -> UInt64 { powerCut ? durable : buffered }

  // MARK: Views that stay open

  mutating func hold(_ point: ScriptPoint) throws {
    let sequence = sequence(point)
    let rows = model.rows(at: sequence)
    held.append((try opened().view(at: sequence), rows))
  }

  mutating func release() throws {
    guard !held.isEmpty else { return }
    let (view, expected) = held.removeFirst()
    let rows = try rows(ModelQuery(), in: view)
    guard rows.map(\.key) == expected.map(\.key),
      zip(rows, expected).allSatisfy({ $0.holdsTheSame(as: $1) })
    else { throw ScriptViolation("a view held at \(view.sequence) has changed") }
    statesChecked += 1
  }

  mutating func countState() { statesChecked += 1 }
}

extension EngineConfiguration {
  /// Small segments, so that short scripts meet everything.
  package static var campaign: EngineConfiguration {
    var configuration = EngineConfiguration()
    configuration.doesBackgroundWorkInline = true
    configuration.segmentBytes = 96 << 10
    configuration.imageEveryBytes = 256 << 10
    configuration.cacheBytes = 64 << 10
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
