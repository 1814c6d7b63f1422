internal import TidemarkEngine

extension ReadFaultSweep {
  /// A finding is anything that is not intact, also beside damage that stays.
  func verify(
    _ disk: SimulatedFileSystem, _ failing: Failing, _ report: inout Report
  ) throws {
    let found = try self.failing(failing, on: disk, &report) {
      try StoreVerifier.verify(
        Self.path, environment: Self.environment(disk), recordsDamage: false,
        encryption: configuration.encryption)
    }
    guard let found else { return }
    report.whole += found.isHealthy ? 1 : 0
    report.told += found.isHealthy ? 0 : 1
    guard !found.isHealthy || found.entries == entries.count else {
      throw ScriptViolation(
        "nothing is wrong, with \(found.entries) of \(entries.count) entries intact")
    }
  }

  /// Each entry is in the new store, or among those that are lost.
  func repair(
    _ disk: SimulatedFileSystem, _ failing: Failing, _ report: inout Report
  ) throws {
    let repaired = try self.failing(failing, on: disk, &report) {
      try StoreRepair.repair(
        from: Self.path, into: Self.target, environment: Self.environment(disk),
        encryption: configuration.encryption)
    }
    guard let repaired else {
      guard try disk.kind(Self.target) == nil else {
        throw ScriptViolation("a repair that failed has left something")
      }
      return
    }
    let found = try copied(on: disk)
    // How many entries stood at the end of a log that was never closed, nothing may tell.
    let isUncertain = repaired.losses.contains { $0.sequences == nil }
    for (sequence, _) in entries where found[sequence] == nil {
      guard isUncertain || repaired.lost.contains(sequence), !repaired.isComplete else {
        throw ScriptViolation("entry \(sequence) of \(entries.count) was lost without a word")
      }
    }
    report.whole += found.count == entries.count ? 1 : 0
    report.told += repaired.isComplete ? 0 : 1
  }

  /// The copy holds everything, or its maker was told that it does not.
  func backUp(
    _ disk: SimulatedFileSystem, _ failing: Failing, _ report: inout Report
  ) throws {
    let engine = try Self.open(Self.path, .readOnly, disk, configuration)
    defer { try? engine.close() }
    let isDone = try self.failing(failing, on: disk, &report) {
      try engine.backup(to: Self.target)
      return true
    }
    guard isDone == nil else {
      guard try copied(on: disk).count == entries.count else {
        throw ScriptViolation("a copy lacks entries")
      }
      return report.whole += 1
    }
    // A copy that was made all the same says itself what it lacks.
    let manifests = StoreLayout.manifests.map { Self.target + "/" + $0 }
    guard try manifests.contains(where: { try disk.kind($0) != nil }) else { return }
    let found = try StoreVerifier.verify(
      Self.target, environment: Self.environment(disk), encryption: configuration.encryption)
    guard !found.isHealthy || found.entries == entries.count else {
      throw ScriptViolation("a copy with \(found.entries) entries looks whole")
    }
    report.told += 1
  }

  /// Compaction works or fails; the state stays as it was.
  func compact(
    _ disk: SimulatedFileSystem, _ failing: Failing, _ options: CompactionOptions,
    _ report: inout Report
  ) throws {
    var engine = try Self.open(Self.path, .write, disk, configuration)
    let done = try self.failing(failing, on: disk, &report) { try engine.compact(options) }
    report.whole += done == nil ? 0 : 1
    try? engine.close()
    let found = try StoreVerifier.verify(
      Self.path, environment: Self.environment(disk), encryption: configuration.encryption)
    guard found.isHealthy else { throw ScriptViolation("compaction left \(found.findings)") }
    engine = try Self.open(Self.path, .readOnly, disk, configuration)
    defer { try? engine.close() }
    let rows = try ScriptRunner(disk: disk, seed: 0).rows(ModelQuery(), in: engine.reader.view())
    let problem = model.mismatch(of: rows, ModelQuery(), at: model.lastSequence)
    if let problem { throw ScriptViolation("compaction has changed the state: \(problem)") }
  }

  /// Reading gives everything or fails.
  func export(
    _ disk: SimulatedFileSystem, _ failing: Failing, _ report: inout Report
  ) throws {
    let found = try self.failing(failing, on: disk, &report) {
      let engine = try Self.open(Self.path, .readOnly, disk, configuration)
      defer { try? engine.close() }
      return try Self.entries(of: engine)
    }
    guard let found else { return }
    guard found == entries else { throw ScriptViolation("entries were left out without a word") }
    report.whole += 1
  }

  /// The entries of the target, each of which must be one of the source's.
  private func copied(on disk: SimulatedFileSystem) throws -> [UInt64: Entry] {
    let check = try StoreVerifier.verify(
      Self.target, environment: Self.environment(disk), encryption: configuration.encryption)
    guard check.isHealthy else { throw ScriptViolation("the new store has \(check.findings)") }
    let engine = try Self.open(Self.target, .readOnly, disk, configuration)
    defer { try? engine.close() }
    var found: [UInt64: Entry] = [:]
    // Reads of what is on record as lost fail, so that the log is read in its pieces.
    var upcoming: UInt64 = 1
    while upcoming <= engine.reader.lastSequence {
      guard let entry = try engine.reader.entryIfKept(at: upcoming) else {
        upcoming += 1
        continue
      }
      found[upcoming] = try Self.entry(entry, of: engine)
      upcoming += 1
    }
    for (sequence, entry) in found where entries[sequence] != entry {
      throw ScriptViolation("entry \(sequence) of the new store is another one")
    }
    return found
  }
}
