package import TidemarkEngine

/// Runs a script with an error at one call after the other, each error that fits the call, once
/// and until it is lifted, and looks at what the store says and holds.
///
/// The rules that must hold: every error is a `TidemarkError` that fits its cause; each write is
/// committed, not committed or unknown, as the error says; what was acknowledged reads back
/// rightly; when the cause is gone the store works again, a full disk with the same handle, the
/// others at the latest after it was opened again; and then it holds the model's state, in whole
/// batches, unknown ones either way, with everything that was acknowledged.
package struct ErrorSweep {
  /// The outcome of a sweep.
  package struct Report: Sendable {
    package var injections = 0
    package var statesChecked = 0
    /// How many errors the store answered with.
    package var errorsSeen = 0
    /// How often the same handle took writes again.
    package var resumed = 0
    /// How often the store had to be opened again.
    package var reopened = 0
    /// How often a lie of the disk was reported as damage.
    package var found = 0
    package var injected = InjectionCounts()
    /// Tells one trace from another.
    package var traceHash: UInt64 = 0

    package init() {}

    package static func + (a: Report, b: Report) -> Report {
      var sum = Report()
      sum.injections = a.injections + b.injections
      sum.statesChecked = a.statesChecked + b.statesChecked
      sum.errorsSeen = a.errorsSeen + b.errorsSeen
      sum.resumed = a.resumed + b.resumed
      sum.traceHash = a.traceHash &* 31 &+ b.traceHash
      sum.found = a.found + b.found
      sum.reopened = a.reopened + b.reopened
      sum.injected = a.injected + b.injected
      return sum
    }
  }

  package let script: Script
  package var configuration: EngineConfiguration

  package init(_ script: Script, configuration: EngineConfiguration = .campaign) {
    self.script = script
    self.configuration = configuration
  }

  /// All calls of a run in which nothing goes wrong.
  package func trace() throws -> [SimulatedCall] {
    let disk = SimulatedFileSystem(seed: script.seed)
    disk.keepsTrace = true
    var run = FaultyRun(script, disk, configuration, plan: .none)
    try run.play { throw ScriptViolation("an error without a cause: \($0)") }
    try run.runner.run(.closeAndReopen)
    let trace = disk.trace
    guard trace.count == disk.calls else { throw ScriptViolation("the trace was cut") }
    return trace
  }

  /// Injects everything that fits into some of the calls.
  /// - Parameters:
  ///   - calls: the calls, counted from 1.
  ///   - shouldStop: asked before each injection; once it says yes, the rest is left out.
  package func run(
    calls: some Sequence<Int>, of trace: [SimulatedCall], unless shouldStop: () -> Bool = { false }
  ) throws -> Report {
    var report = Report()
    for call in calls {
      for injection in Self.injections(atCall: call, of: trace) {
        if shouldStop() { return report }
        try run(injection, &report)
      }
    }
    return report
  }

  /// Fills the disk before some of the steps.
  package func run(
    fullFrom steps: some Sequence<Int>, unless shouldStop: () -> Bool = { false }
  ) throws -> Report {
    var report = Report()
    for step in steps where !shouldStop() { try run(Self.fullDisk(fromStep: step), &report) }
    return report
  }

  /// Runs the script with one fault.
  package func run(_ injection: Injection, _ report: inout Report) throws {
    let disk = SimulatedFileSystem(seed: script.seed)
    var run = FaultyRun(
      script, disk, configuration, plan: injection.plan, fullFromStep: injection.fullFromStep)
    do {
      try run.play { error in
        guard !injection.isInvisible else {
          throw ScriptViolation("the program was told: \(error)")
        }
        guard injection.explains(error.code) else {
          throw ScriptViolation("an error that its cause does not explain, \(error.code): \(error)")
        }
      }
      disk.plan = .none
      disk.capacity = nil
      try run.goOn(injection, &report)
    } catch let violation as ScriptViolation {
      throw ScriptViolation(
        "\(injection.description), seed \(script.seed): \(violation.description)")
    } catch {
      throw ScriptViolation(
        "\(injection.description), seed \(script.seed): unexpected error \(error)")
    }
    report.injections += 1
    report.errorsSeen += run.errors
    report.statesChecked += run.runner.statesChecked
    report.injected = report.injected + disk.injected
    report.traceHash = report.traceHash &* 31 &+ disk.traceHash
  }
}
