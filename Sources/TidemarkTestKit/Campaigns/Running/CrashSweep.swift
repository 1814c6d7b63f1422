package import TidemarkEngine

/// Runs a script, takes the disk as a crash at one call after the other would find it, and looks
/// at what a program makes of it.
///
/// The script runs once; every call of it and every survival makes a disk of its own.
package struct CrashSweep {
  /// The outcome of a sweep.
  package struct Report: Sendable {
    package var crashes = 0
    package var statesChecked = 0
    package var injected = InjectionCounts()
    package var calls = 0
    /// Tells one trace from another.
    package var traceHash: UInt64 = 0
  }

  package let script: Script
  package var configuration: EngineConfiguration
  /// How many crashes are nested: the second happens during the recovery from the first.
  package var depth: Int

  package init(
    _ script: Script, configuration: EngineConfiguration = .campaign, depth: Int = 1
  ) {
    self.script = script
    self.configuration = configuration
    self.depth = depth
  }

  /// How many mutating calls the script makes when nothing goes wrong.
  package func countCalls() throws -> Int {
    var count = 0
    try eachCrashPoint { _, _, _ in count += 1 }
    return count
  }

  /// Crashes at some of the calls: kills the process once, and cuts the power with several
  /// survivals.
  /// - Parameters:
  ///   - calls: the calls to crash at, counted from 1.
  ///   - randoms: how many random survivals beside the fixed ones.
  package func run(
    calls: some Sequence<Int>, randoms: Int = 1, unless shouldStop: () -> Bool = { false }
  ) throws -> Report {
    var report = Report()
    let wanted = Set(calls)
    var call = 0
    try eachCrashPoint { point, runner, model in
      call += 1
      guard wanted.contains(call) else { return }
      report.calls += 1
      var generator = SeededGenerator(seed: script.seed &* 1_000_003 &+ UInt64(call))
      let survivals = Survival.sweep(seed: generator.next(), randoms: randoms)
      for survival in [nil] + survivals.map(Optional.some) where !shouldStop() {
        let seed = generator.next()
        let disk =
          survival.map { SimulatedFileSystem(point, keeping: $0, seed: seed) }
          ?? SimulatedFileSystem(killedAt: point, seed: seed)
        do {
          try crash(runner.afterCrash(on: disk, model: model, seed: seed), survival, seed, &report)
        } catch {
          let violation = error as? ScriptViolation
          let what = violation?.description ?? "unexpected error \(error)"
          let name = survival.map { "\($0)" } ?? "kill"
          throw ScriptViolation("crash at call \(call), \(name), seed \(script.seed): \(what)")
        }
      }
    }
    return report
  }

  /// Runs the script once.
  /// - Parameter body: called with the disk at every mutating call, the program as it was before
  ///   the step that made the call, and what it had written or was just writing.
  private func eachCrashPoint(
    _ body: (DiskSnapshot, ScriptRunner, ModelStore) throws -> Void
  ) throws {
    let disk = SimulatedFileSystem(seed: script.seed)
    disk.keepsCrashPoints = true
    // Some programs die between the parts of one write.
    if !script.seed.isMultiple(of: 3) {
      disk.plan = [FaultRule(.shortTransfer, .chance(0.3), calls: .only([.write]))]
    }
    var runner = ScriptRunner(disk: disk, seed: script.seed, configuration: configuration)
    var before = runner
    try runner.open()
    for point in disk.takeCrashPoints() { try body(point, before, before.model) }
    for step in script.steps {
      before = runner
      try runner.run(step)
      let model = step.isWrite ? runner.model : before.model
      for point in disk.takeCrashPoints() { try body(point, before, model) }
    }
    try runner.checkAll()
    for point in disk.takeCrashPoints() { try body(point, runner, runner.model) }
  }

  /// Recovers, with further crashes during the recovery as deep as it goes, and goes on.
  private func crash(
    _ crashed: ScriptRunner, _ survival: Survival?, _ seed: UInt64, _ report: inout Report
  ) throws {
    var runner = crashed
    let disk = runner.disk
    var hasLostPower = survival != nil
    var generator = SeededGenerator(seed: seed)
    report.crashes += 1
    for _ in 1..<max(1, depth) {
      disk.plan = .powerCut(atCall: 1 + generator.int(below: 12))
      do {
        try runner.recover(atLeast: runner.acknowledged(powerCut: hasLostPower))
      } catch {
        guard !disk.isRunning, !(error is ScriptViolation) else { throw error }
      }
      if disk.isRunning { disk.powerCut() }
      // After a kill the kernel had the rest; the power cut may take it.
      hasLostPower = true
      report.crashes += 1
      disk.plan = []
      disk.restart(keeping: .random(seed: generator.next()))
    }
    try runner.recover(atLeast: runner.acknowledged(powerCut: hasLostPower))
    // Closing writes a run of the index, also where nothing was written since the crash.
    if generator.chance(0.5) { try runner.run(.closeAndReopen) }
    // The store must be of use afterwards.
    try runner.run(.write(ScriptWrite(.put, ScriptBytes("after"), ScriptBytes("crash"))))
    try runner.run(.closeAndReopen)
    runner.abandon()
    report.statesChecked += runner.statesChecked
    report.injected = report.injected + disk.injected
    report.traceHash = (report.traceHash ^ disk.traceHash) &* 0x9e37_79b9_7f4a_7c15
  }
}

extension ScriptStep {
  /// Whether it commits something.
  fileprivate var isWrite: Bool {
    switch self {
    case .write, .batch, .compareAndPut, .undo, .clear: true
    default: false
    }
  }
}
