internal import TidemarkEngine

/// One run of a script on a disk that fails, by a program that goes on as well as it can.
struct FaultyRun {
  private let script: Script
  private let disk: SimulatedFileSystem
  private let plan: FaultPlan
  private let fullFromStep: Int?
  var runner: ScriptRunner
  /// How many errors the store answered with.
  private(set) var errors = 0
  /// The last durable sequence when a sync lied for the first time: what it claimed nobody can
  /// keep.
  private var honestlyDurable: UInt64 = 0

  init(
    _ script: Script, _ disk: SimulatedFileSystem, _ configuration: EngineConfiguration,
    plan: FaultPlan, fullFromStep: Int? = nil
  ) {
    self.script = script
    self.disk = disk
    self.plan = plan
    self.fullFromStep = fullFromStep
    runner = ScriptRunner(disk: disk, seed: script.seed, configuration: configuration)
  }

  /// Runs all steps, a kill in the middle, and a backup.
  /// - Parameter judge: called with every error that the store answers with.
  mutating func play(_ judge: (TidemarkError) throws -> Void) throws {
    disk.plan = plan
    let middle = script.steps.count / 2
    for (index, step) in script.steps.enumerated() {
      if index == fullFromStep { disk.capacity = disk.usedBytes }
      if index == middle { try attempt(judge) { try $0.runner.run(.kill) } }
      try attempt(judge) { run in
        try run.openIfNeeded()
        try run.runner.run(step)
      }
      if disk.injected[.syncFailsLate] == 0 {
        honestlyDurable = runner.acknowledged(powerCut: true)
      }
      guard runner.isPoisoned, runner.engine != nil else { continue }
      // It still reads; then the program opens it again, which may not work yet.
      try attempt(judge) { try $0.runner.checkAll() }
      runner.abandon()
    }
    try attempt(judge) { run in
      try run.openIfNeeded()
      try run.backUp()
    }
  }

  private mutating func attempt(
    _ judge: (TidemarkError) throws -> Void, _ body: (inout FaultyRun) throws -> Void
  ) throws {
    do { try body(&self) } catch let error as TidemarkError {
      errors += 1
      try judge(error)
    }
  }

  private mutating func openIfNeeded() throws {
    guard runner.engine == nil else { return }
    try runner.recover(atLeast: runner.acknowledged(powerCut: false))
  }

  private mutating func backUp() throws {
    guard let engine = runner.engine else { return }
    let target = "/copy"
    try engine.backup(to: target)
    var copy = ScriptRunner(
      disk: disk, seed: script.seed, configuration: runner.configuration, at: target,
      model: runner.model)
    try copy.open()
    defer { copy.abandon() }
    try copy.checkAll()
  }

  /// The cause is gone: the store must work again.
  mutating func goOn(
    _ injection: ErrorSweep.Injection, _ report: inout ErrorSweep.Report
  ) throws {
    let write = ScriptStep.write(
      ScriptWrite(.put, ScriptBytes("after"), ScriptBytes("the error")))
    try runner.run(.durability(.durable))
    var hasWritten = false
    if runner.engine != nil {
      do {
        try runner.checkAll()
        try runner.run(write)
        hasWritten = true
        report.resumed += 1
      } catch let error as TidemarkError {
        let needsReopening =
          switch (injection.fault, error.code) {
          case (_, .poisoned), (.syncRevertsPages, .damaged): true
          // The confession comes only now.
          case (.syncFailsLate, .unknownOutcome): true
          default: false
          }
        guard needsReopening, !injection.lacksOnlySpace, !injection.isInvisible else {
          throw ScriptViolation("it does not go on although the cause is gone: \(error)")
        }
        runner.abandon()
      }
    }
    if injection.endsWithPowerCut {
      let lied = injection.fault == .syncFailsLate
      let floor =
        lied && !hasWritten ? honestlyDurable : runner.acknowledged(powerCut: true)
      runner.forget()
      disk.powerCut()
      disk.restart(keeping: .random(seed: script.seed &+ UInt64(disk.calls)))
      do { try runner.recover(atLeast: floor) } catch let error as TidemarkError {
        // A sync that lied about a sealed segment is found out, and that is all one can ask.
        guard lied, error.code == .damaged else { throw error }
        report.found += 1
        return
      }
    } else if runner.engine == nil {
      report.reopened += 1
      try openIfNeeded()
    }
    do { try finish(injection, write) } catch let error as TidemarkError {
      // Opening looks at the last sealed segment only; of the others it is found out by who reads.
      guard injection.fault == .syncFailsLate, injection.endsWithPowerCut, error.code == .damaged
      else { throw error }
      report.found += 1
      return
    }
    guard disk.openFiles == 0 else {
      throw ScriptViolation("\(disk.openFiles) files were left open")
    }
  }

  private mutating func finish(
    _ injection: ErrorSweep.Injection, _ write: ScriptStep
  ) throws {
    // A sync that lied confesses at the next sync of the same file, be it of MANIFEST on closing.
    var confessions = injection.fault == .syncFailsLate ? 2 : 0
    while true {
      do {
        try openIfNeeded()
        try runner.run(write)
        try runner.run(.closeAndReopen)
        return runner.abandon()
      } catch let error as TidemarkError {
        runner.abandon()
        guard confessions > 0 else { throw error }
        confessions -= 1
      }
    }
  }
}
