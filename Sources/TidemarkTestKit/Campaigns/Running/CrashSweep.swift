package import TidemarkEngine

/// Runs a script with a crash at one call after the other and looks at what is left.
package struct CrashSweep {
  /// What a sweep has done.
  package struct Report: Sendable {
    package var crashes = 0
    package var statesChecked = 0
    package var injected = InjectionCounts()
    package var calls = 0
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
    let disk = SimulatedFileSystem(seed: script.seed)
    var runner = ScriptRunner(disk: disk, seed: script.seed, configuration: configuration)
    try runner.open()
    for step in script.steps { try runner.run(step) }
    try runner.checkAll()
    return disk.mutatingCalls
  }

  /// Crashes at some of the calls, each with several survivals.
  /// - Parameters:
  ///   - calls: the calls to crash at, counted from 1.
  ///   - randoms: how many random survivals beside the fixed ones.
  package func run(
    calls: some Sequence<Int>, randoms: Int = 1
  ) throws -> Report {
    var report = Report()
    for call in calls {
      var generator = SeededGenerator(seed: script.seed &* 1_000_003 &+ UInt64(call))
      for survival in Survival.sweep(seed: generator.next(), randoms: randoms) {
        try crash(at: call, survival, seed: generator.next(), &report)
      }
      report.calls += 1
    }
    return report
  }

  private func crash(
    at call: Int, _ survival: Survival, seed: UInt64, _ report: inout Report
  ) throws {
    let disk = SimulatedFileSystem(seed: seed)
    disk.plan = .powerCut(atCall: call)
    var runner = ScriptRunner(disk: disk, seed: script.seed, configuration: configuration)
    do {
      try Self.runToCrash(&runner, script.steps[...], disk)
      report.crashes += 1
      try recover(&runner, survival, disk, depth: depth, seed: seed, &report)
      // The store must be of use afterwards.
      try runner.run(.write(ScriptWrite(.put, ScriptBytes("after"), ScriptBytes("crash"))))
      try runner.run(.closeAndReopen)
    } catch let violation as ScriptViolation {
      throw ScriptViolation(
        "crash at call \(call), \(survival), seed \(script.seed): \(violation.description)")
    } catch {
      throw ScriptViolation(
        "crash at call \(call), \(survival), seed \(script.seed): unexpected error \(error)")
    }
    report.statesChecked += runner.statesChecked
    report.injected = report.injected + disk.injected
  }

  /// Runs steps until the power goes off; errors before that are violations.
  private static func runToCrash(
    _ runner: inout ScriptRunner, _ steps: ArraySlice<ScriptStep>, _ disk: SimulatedFileSystem
  ) throws {
    do {
      try runner.open()
      for step in steps { try runner.run(step) }
    } catch {
      guard !disk.isRunning, !(error is ScriptViolation) else { throw error }
    }
    if disk.isRunning { disk.powerCut() }
  }

  /// Recovers, with further crashes during the recovery while `depth` allows.
  private func recover(
    _ runner: inout ScriptRunner, _ survival: Survival, _ disk: SimulatedFileSystem, depth: Int,
    seed: UInt64, _ report: inout Report
  ) throws {
    let acknowledged = runner.acknowledged(powerCut: true)
    var left = depth - 1
    var generator = SeededGenerator(seed: seed)
    disk.plan = []
    disk.restart(keeping: survival)
    while left > 0 {
      left -= 1
      disk.plan = .powerCut(atCall: 1 + generator.int(below: 12))
      do {
        try runner.recover(atLeast: acknowledged)
      } catch {
        guard !disk.isRunning, !(error is ScriptViolation) else { throw error }
      }
      if disk.isRunning { disk.powerCut() }
      report.crashes += 1
      disk.plan = []
      disk.restart(keeping: .random(seed: generator.next()))
    }
    try runner.recover(atLeast: acknowledged)
  }
}
