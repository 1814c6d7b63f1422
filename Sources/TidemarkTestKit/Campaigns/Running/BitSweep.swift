package import TidemarkEngine

/// Damages the files of a store, one place after the other, and looks at what is made of it.
///
/// The rules that must hold: nothing traps; whatever an open store answers is right or an error;
/// the state is the whole one, or a prefix of it where only the end of a log that was never closed
/// was hit; verify reports damage to the log where it is.
package struct BitSweep {
  /// The outcome of a sweep.
  package struct Report: Sendable {
    package var damages = 0
    package var statesChecked = 0
    /// How many openings refused.
    package var refused = 0
    /// How many stores opened and were whole.
    package var whole = 0
    /// How many opened at an earlier end of the log.
    package var shortened = 0
    /// How many of verify's reports named the damage.
    package var named = 0
    package var byKind: [String: Int] = [:]

    package init() {}

    package static func + (a: Report, b: Report) -> Report {
      var sum = a
      sum.damages += b.damages
      sum.statesChecked += b.statesChecked
      sum.refused += b.refused
      sum.whole += b.whole
      sum.shortened += b.shortened
      sum.named += b.named
      sum.byKind.merge(b.byKind) { $0 + $1 }
      return sum
    }
  }

  let script: Script
  let disk: DiskSnapshot
  let model: ModelStore
  /// Whether the store was closed; else its process was killed.
  package let isClosed: Bool
  /// All files with their bytes.
  package let files: [(path: String, bytes: [UInt8])]
  /// The segment that was being written when the process was killed, and where its last write
  /// began: damage from there on cannot be told from a write that stopped midway.
  let openSegment: (path: String, lastWrite: Int)?
  private let configuration: EngineConfiguration

  /// Runs a script and takes the disk.
  package init(
    _ script: Script, isClosed: Bool, configuration: EngineConfiguration = .campaign
  ) throws {
    self.script = script
    self.isClosed = isClosed
    self.configuration = configuration
    let disk = SimulatedFileSystem(seed: script.seed)
    disk.keepsTrace = true
    var runner = ScriptRunner(disk: disk, seed: script.seed, configuration: configuration)
    try runner.open()
    for step in script.steps { try runner.run(step) }
    try runner.checkAll()
    let active = try runner.engine?.status().segments.last.flatMap { $0.isSealed ? nil : $0.file }
    if isClosed {
      runner.abandon()
      openSegment = nil
    } else {
      disk.kill()
      runner.forget()
      let last = active.flatMap { name in
        disk.trace.last { $0.operation == .write && $0.path.hasSuffix(name) }
      }
      openSegment = last.map { (String($0.path.drop { $0 == "/" }), $0.offset) }
    }
    model = runner.model
    self.disk = disk.snapshot()
    files = disk.files().map { ($0, disk.contents(of: $0) ?? []) }
  }

  /// How many bits all files have.
  package var bitCount: Int { files.reduce(0) { $0 + $1.bytes.count * 8 } }

  /// Every truncation length of every file, as one list.
  package var byteCount: Int { bitCount / 8 }

  /// The bit with a number.
  package func flip(_ number: Int) -> Damage {
    var left = number
    for (path, bytes) in files {
      if left < bytes.count * 8 { return .flip(path, bit: left) }
      left -= bytes.count * 8
    }
    return .flip("", bit: 0)
  }

  /// The truncation with a number.
  package func cut(_ number: Int) -> Damage {
    var left = number
    for (path, bytes) in files {
      if left < bytes.count { return .cut(path, to: left) }
      left -= bytes.count
    }
    return .cut("", to: 0)
  }

  /// Puts one kind of damage onto a disk of its own and looks at the store.
  package func run(_ damage: Damage, _ report: inout Report) throws {
    let disk = SimulatedFileSystem(killedAt: self.disk, seed: script.seed)
    guard damage.inflict(on: disk, files) else { return }
    report.damages += 1
    report.byKind[damage.kind, default: 0] += 1
    do {
      try verify(damage, disk, &report)
      try open(damage, disk, &report)
      try openBeside(disk, &report)
      guard disk.openFiles == 0 else {
        throw ScriptViolation("\(disk.openFiles) files were left open")
      }
    } catch {
      let what = (error as? ScriptViolation)?.description ?? "unexpected error \(error)"
      throw ScriptViolation(
        "\(damage), after \(isClosed ? "closing" : "a kill"), seed \(script.seed): \(what)")
    }
  }

  private func environment(_ disk: SimulatedFileSystem) -> EngineEnvironment {
    EngineEnvironment(
      fileSystem: disk, clock: ManualClock(), random: SeededRandom(seed: script.seed))
  }

  /// Opens for writing, as a program does that knows nothing of the damage.
  private func open(
    _ damage: Damage, _ disk: SimulatedFileSystem, _ report: inout Report
  ) throws {
    let engine: Engine
    do {
      engine = try Engine.open(
        "/store", configuration: configuration, environment: environment(disk))
    } catch {
      try Self.expectDamage(error)
      report.refused += 1
      return
    }
    defer { try? engine.close() }
    let reached = engine.reader.lastSequence
    if reached == model.lastSequence {
      report.whole += 1
    } else {
      guard mayShorten(damage), model.batchEnds.contains(reached) else {
        throw ScriptViolation("the log ends at \(reached) instead of \(model.lastSequence)")
      }
      report.shortened += 1
    }
    try DamagedReading(engine, model, at: reached).check()
    report.statesChecked += 1
  }

  /// Whether nobody can tell that the log once went further.
  private func mayShorten(_ damage: Damage) -> Bool {
    guard let openSegment else { return false }
    return damage.reaches(openSegment.path, from: openSegment.lastWrite)
  }

  /// Opens without the lock, and reads around the damage.
  private func openBeside(_ disk: SimulatedFileSystem, _ report: inout Report) throws {
    for recovery in [EngineConfiguration.Recovery.strict, .salvage] {
      var configuration = configuration
      configuration.access = .readOnly
      configuration.recovery = recovery
      let engine: Engine
      do {
        engine = try Engine.open(
          "/store", configuration: configuration, environment: environment(disk))
      } catch {
        try Self.expectDamage(error)
        continue
      }
      defer { try? engine.close() }
      let reached = engine.reader.lastSequence
      guard model.batchEnds.contains(reached) else {
        throw ScriptViolation("a reader sees sequence \(reached), inside a batch")
      }
      try DamagedReading(engine, model, at: reached).check()
      report.statesChecked += 1
      // Reading around damage differs from this only where this refuses.
      if reached == model.lastSequence { return }
    }
  }

  /// Verify must name what is wrong with the log, unless it is no more than a torn tail.
  private func verify(
    _ damage: Damage, _ disk: SimulatedFileSystem, _ report: inout Report
  ) throws {
    let found: VerifyReport
    do { found = try StoreVerifier.verify("/store", environment: environment(disk)) } catch {
      try Self.expectDamage(error)
      return
    }
    guard damage.isInSealedLog(files), !mayShorten(damage) else { return }
    guard case .flip(let path, let bit) = damage, path != openSegment?.path else {
      guard !found.isHealthy else { throw ScriptViolation("verify finds nothing") }
      return
    }
    guard
      let finding = found.findings.first(where: { path.hasSuffix($0.file) }),
      finding.offset <= bit / 8, bit / 8 < finding.offset + max(finding.length, 1)
    else { throw ScriptViolation("verify does not name the place: \(found.findings)") }
    report.named += 1
  }

  /// Damage must be told as damage, never as a failing system or as nothing at all.
  static func expectDamage(_ error: TidemarkError) throws {
    switch error.code {
    case .damaged, .formatTooNew, .formatTooOld, .possiblyStale: return
    // Without a MANIFEST that can be told from other files, it may look like no store.
    case .notAStore, .storeMissing: return
    default: throw ScriptViolation("damage was told as \(error.code): \(error)")
    }
  }
}
