package import TidemarkEngine

/// Maintains a store on a disk that reads only now and then: whatever is done, each entry is in the
/// result, or the program was told that something is not.
package struct ReadFaultSweep {
  /// The work that is done while reads fail.
  package enum Work: CaseIterable, Sendable {
    case verify, repair, backup, compact, dropHistory, export
  }

  /// Which reads fail.
  package enum Failing: Sendable {
    /// Each with this probability.
    case chance(Double)
    /// All from this one on, counted from 1.
    case from(Int)

    fileprivate var plan: FaultPlan {
      let trigger: FaultRule.Trigger =
        switch self {
        case .chance(let probability): .chance(probability)
        case .from(let number): .call(number)
        }
      return [FaultRule(.error(.EIO), trigger, calls: .only([.read]), times: .max)]
    }
  }

  /// The outcome of some runs.
  package struct Report: Sendable {
    package var runs = 0
    /// How often the work ended with an error.
    package var refused = 0
    /// How often it ended with a list of what could not be read.
    package var told = 0
    /// How often everything was there all the same.
    package var whole = 0
    package var injected = InjectionCounts()

    package init() {}
  }

  struct Entry: Hashable {
    var key: [UInt8]
    var kind: EntryKind
    var value: [UInt8]
    var labels: [[UInt8]]
    var attributes: EntryAttributes
    var commitTime: UInt64
    var previous: UInt64
  }

  let script: Script
  let configuration: EngineConfiguration
  let model: ModelStore
  let entries: [UInt64: Entry]
  private let snapshot: DiskSnapshot
  static let path = "/store"
  static let target = "/target"

  /// Runs a script, after which the store is closed or its process is killed.
  package init(
    _ script: Script, isClosed: Bool, configuration: EngineConfiguration = .campaign
  ) throws {
    let store = try BitSweep(script, isClosed: isClosed, configuration: configuration)
    self.script = script
    self.configuration = configuration
    snapshot = store.disk
    model = store.model
    let disk = SimulatedFileSystem(killedAt: snapshot, seed: script.seed)
    let engine = try Self.open(Self.path, .readOnly, disk, configuration)
    defer { try? engine.close() }
    entries = try Self.entries(of: engine)
  }

  /// Does one kind of work once.
  package func run(
    _ work: Work, _ failing: Failing, seed: UInt64, _ report: inout Report
  ) throws {
    let disk = SimulatedFileSystem(killedAt: snapshot, seed: seed)
    do {
      switch work {
      case .verify: try verify(disk, failing, &report)
      case .repair: try repair(disk, failing, &report)
      case .backup: try backUp(disk, failing, &report)
      case .compact: try compact(disk, failing, CompactionOptions(), &report)
      case .dropHistory:
        try compact(disk, failing, CompactionOptions(dropHistory: true), &report)
      case .export: try export(disk, failing, &report)
      }
      guard disk.openFiles == 0 else {
        throw ScriptViolation("\(disk.openFiles) files were left open")
      }
    } catch {
      let what = (error as? ScriptViolation)?.description ?? "unexpected error \(error)"
      throw ScriptViolation(
        "\(work), \(failing), seed \(seed), after the script of seed \(script.seed): \(what)")
    }
    report.runs += 1
    report.injected = report.injected + disk.injected
  }

  /// Does something while reads fail.
  /// - Returns: nil when it ended with an error of the disk.
  func failing<R>(
    _ failing: Failing, on disk: SimulatedFileSystem, _ report: inout Report, _ body: () throws -> R
  ) throws -> R? {
    disk.plan = failing.plan
    defer { disk.plan = .none }
    do { return try body() } catch let error as TidemarkError {
      guard [.inputOutput, .damaged].contains(error.code) else {
        throw ScriptViolation("a failing read was told as \(error.code): \(error)")
      }
      report.refused += 1
      return nil
    }
  }

  // MARK: Reading without faults

  static func environment(_ disk: SimulatedFileSystem) -> EngineEnvironment {
    EngineEnvironment(fileSystem: disk, clock: ManualClock(), random: SeededRandom(seed: 5))
  }

  static func open(
    _ path: String, _ access: EngineConfiguration.Access, _ disk: SimulatedFileSystem,
    _ configuration: EngineConfiguration
  ) throws -> Engine {
    var configuration = configuration
    configuration.access = access
    return try Engine.open(path, configuration: configuration, environment: environment(disk))
  }

  /// All entries of the log, the engine's own among them.
  static func entries(of engine: Engine) throws -> [UInt64: Entry] {
    var entries: [UInt64: Entry] = [:]
    var cursor = LogCursor(
      engine.reader, from: 1, through: engine.reader.lastSequence, includesRecords: true)
    while let entry = try cursor.next() {
      entries[entry.sequence] = try Self.entry(entry, of: engine)
    }
    return entries
  }

  static func entry(_ entry: LogEntry, of engine: Engine) throws -> Entry {
    let value = try engine.reader.withValue(of: entry.sequence) {
      (value, _) throws(TidemarkError) in
      [UInt8](copying: value)
    }
    return Entry(
      key: entry.key, kind: entry.head.kind, value: value, labels: entry.labels,
      attributes: try entry.attributes(), commitTime: entry.head.commitTime,
      previous: entry.head.previous)
  }
}
