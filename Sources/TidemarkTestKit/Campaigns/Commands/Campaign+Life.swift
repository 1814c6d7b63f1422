internal import TidemarkEngine

extension Campaign {
  /// Crashes at every call of syncs of a collection.
  func manifest(
    _ script: Script, _ configuration: EngineConfiguration, unless shouldStop: () -> Bool
  ) throws -> CampaignReport {
    let sweep = GenerationSweep(seed: script.seed, configuration: configuration)
    return Self.report(of: try sweep.run(unless: shouldStop), between: "items found staged")
  }

  /// Crashes at every call of a program that writes objects with indexes.
  func indexes(
    _ script: Script, _ configuration: EngineConfiguration, unless shouldStop: () -> Bool
  ) throws -> CampaignReport {
    let sweep = IndexSweep(seed: script.seed, configuration: configuration)
    return Self.report(of: try sweep.run(unless: shouldStop), between: "objects found marked")
  }

  /// Lets two versions of a program take turns over one store.
  func versions(
    _ script: Script, _ configuration: EngineConfiguration, unless shouldStop: () -> Bool
  ) throws -> CampaignReport {
    var sweep = VersionSweep(seed: script.seed, configuration: configuration)
    return Self.report(of: try sweep.run(unless: shouldStop), between: "objects of the older one")
  }

  private static func report(of result: SweepReport, between: String) -> CampaignReport {
    var report = CampaignReport()
    report.runs = result.crashes
    report.statesChecked = result.statesChecked
    report.injected = result.injected
    report.traceHash = result.traceHash
    report.notes = [between: result.between]
    return report
  }

  /// Carries a script out on a store and on the model.
  func model(
    _ script: Script, _ configuration: EngineConfiguration = .campaign,
    unless shouldStop: () -> Bool = { false }
  ) throws -> CampaignReport {
    let disk = SimulatedFileSystem(seed: script.seed)
    var steps = 0
    var runner = ScriptRunner(disk: disk, seed: script.seed, configuration: configuration)
    do {
      try runner.open()
      for step in script.steps where !shouldStop() {
        try runner.run(step)
        steps += 1
      }
      try runner.checkAll()
      runner.abandon()
    } catch let error as TidemarkError {
      throw ScriptViolation("unexpected error \(error)")
    }
    var report = CampaignReport()
    report.runs = steps
    report.statesChecked = runner.statesChecked
    report.injected = disk.injected
    report.traceHash = disk.traceHash
    return report
  }

  /// A day in the life of a store whose retention is an hour: what it takes in the second half
  /// must be about what it takes in the first.
  func soak(
    _ script: Script, _ configuration: EngineConfiguration = .campaign,
    unless shouldStop: () -> Bool = { false }
  ) throws -> CampaignReport {
    let disk = SimulatedFileSystem(seed: script.seed)
    let clock = ManualClock()
    var configuration = configuration
    configuration.retention = Retention(age: .seconds(3600))
    configuration.segmentBytes = 1 << 20
    let environment = EngineEnvironment(
      fileSystem: disk, clock: clock, random: SeededRandom(seed: script.seed))
    var generator = SeededGenerator(seed: script.seed)
    var most: [(disk: Int, memory: Int, files: Int)] = []
    do {
      var engine = try Engine.open("/store", configuration: configuration, environment: environment)
      for hour in 0..<24 {
        var peak = (disk: 0, memory: 0, files: 0)
        for minute in 0..<60 where !shouldStop() {
          for _ in 0..<40 { try Self.soakStep(engine, &generator) }
          clock.advance(by: .seconds(60))
          if minute % 15 == 14 { try engine.compact() }
          peak.disk = max(peak.disk, disk.usedBytes)
          peak.files = max(peak.files, disk.openFiles)
          peak.memory = max(peak.memory, try engine.status().memoryBytes)
        }
        most.append(peak)
        if hour % 5 == 4 {
          try engine.close()
          engine = try Engine.open(
            "/store", configuration: configuration, environment: environment)
        }
      }
      try engine.close()
    } catch { throw ScriptViolation("unexpected error \(error)") }
    var report = CampaignReport()
    // A part of the day has no plateau to be judged by.
    guard !shouldStop() else { return report }
    try Self.expectPlateau("disk", most.map(\.disk))
    try Self.expectPlateau("memory", most.map(\.memory))
    try Self.expectPlateau("open files", most.map(\.files))
    report.runs = 24 * 60 * 40
    report.statesChecked = most.count
    report.traceHash = disk.traceHash
    return report
  }

  private static func soakStep(
    _ engine: Engine, _ generator: inout SeededGenerator
  ) throws(TidemarkError) {
    let key = Array("key \(generator.int(below: 500))".utf8)
    var batch = OperationBatch()
    if generator.chance(0.1) {
      try batch.add(.delete, key: key.rawSpan)
    } else {
      let value = generator.bytes(generator.int(in: 50...800))
      let set = try batch.addLabelSet([Array("label \(generator.int(below: 20))".utf8)])
      try batch.add(.put, key: key.rawSpan, value: value.rawSpan, labelSet: set)
    }
    try engine.commit(batch)
    _ = try engine.reader.withValue(forKey: key.rawSpan) { (value, _) throws(TidemarkError) in
      value.byteCount
    }
  }

  private static func expectPlateau(_ name: String, _ peaks: [Int]) throws {
    let early = peaks[2..<(peaks.count / 2)].max() ?? 0
    let late = peaks[(peaks.count / 2)...].max() ?? 0
    guard late <= early + early / 4 else {
      throw ScriptViolation("\(name) grows: at most \(early) in the morning, \(late) later")
    }
  }
}
