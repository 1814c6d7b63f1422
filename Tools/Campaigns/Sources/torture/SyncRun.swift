import ArgumentParser
@_spi(Campaigns) import TidemarkSyncTestKit

/// Runs the simulator of replication over many seeds, some at a time.
struct SyncRun {
  var firstSeed: UInt64
  /// How many seeds; nil for as many as the time allows.
  var runs: Int?
  var minutes: Double?
  var workers: Int
  /// A bug to plant first.
  var bug: String?
  var directory: String
  var showsTrace: Bool

  private struct Outcome: Sendable {
    var report = SyncSimulationReport()
    var seeds = 0
    /// The first of each worker.
    var violations: [SyncViolation] = []
  }

  /// - Parameter replay: a file with a script to run instead.
  func run(replay: String?) async throws {
    guard SyncPlantedTrial.plant(bug) else {
      throw ValidationError("this build has no planted bug \(bug ?? "")")
    }
    if let replay {
      let script = try SyncScript(parsing: Files.read(replay))
      do throws(SyncViolation) {
        let report = try SyncSimulation(script).run(
          narrating: showsTrace ? { Output.line($0) } : nil)
        Output.line("\(report)")
      } catch {
        Output.line("FAILED: \(error.message)")
        throw ExitCode.failure
      }
      return
    }
    let clock = ContinuousClock()
    let start = clock.now
    let end = minutes.map { start + .seconds($0 * 60) }
    let outcome = await runAll(until: end)
    let seconds = (clock.now - start) / .seconds(1)
    Output.line("\(outcome.seeds) seeds in \(Int(seconds)) s, \(workers) at a time")
    Output.line("\(Int(Double(outcome.seeds) / max(seconds, 0.001) * 10) / 10) seeds a second")
    Output.line("\(outcome.report)")
    if showsTrace { Output.line("trace \(String(outcome.report.trace, radix: 16))") }
    let violations = outcome.violations.sorted { $0.script.seed < $1.script.seed }
    guard let violation = violations.first else { return }
    for violation in violations {
      Output.line("FAILED: seed \(violation.script.seed): \(violation.message)")
    }
    Output.line("looking for the shortest script that fails ...")
    let shortest = SyncSimulation.shortest(violation)
    Output.line("\(shortest)")
    try Files.write(
      "\(shortest)", to: "\(directory)/sync-\(violation.script.seed).script")
    throw ExitCode.failure
  }

  /// The limit of one worker, which goes on until then.
  private static let mostViolations = 20

  private func runAll(until end: ContinuousClock.Instant?) async -> Outcome {
    await withTaskGroup(of: Outcome.self) { group in
      for worker in 0..<workers {
        group.addTask { work(worker, until: end) }
      }
      var total = Outcome()
      for await part in group {
        total.report = total.report + part.report
        total.seeds += part.seeds
        total.violations += part.violations
      }
      return total
    }
  }

  private func work(_ worker: Int, until end: ContinuousClock.Instant?) -> Outcome {
    var outcome = Outcome()
    var index = worker
    while index < runs ?? .max {
      if let end, ContinuousClock().now >= end { break }
      do throws(SyncViolation) {
        let report = try SyncSimulation(seed: firstSeed &+ UInt64(index)).run()
        outcome.report = outcome.report + report
      } catch {
        outcome.violations.append(error)
        guard outcome.violations.count < Self.mostViolations else { return outcome }
      }
      outcome.seeds += 1
      index += workers
    }
    return outcome
  }
}

/// Plants one mistake after the other into replication, and looks for the seeds in which the
/// simulator notices it.
struct SyncPlantedRun {
  var firstSeed: UInt64
  /// How many are tried at most.
  var seeds: Int
  var workers: Int
  /// Only this one; nil for all.
  var bug: String?

  /// - Throws: when one was not noticed, or something was although nothing was planted.
  func run() async throws {
    let names = SyncPlantedTrial.all.filter { bug == nil || $0 == bug }
    guard !names.isEmpty else {
      throw ValidationError(
        "no such planted bug; run TIDEMARK_PLANTED=1 Tools/torture planted-sync")
    }
    SyncPlantedTrial.plant(nil)
    guard await caught(nil) == 0 else {
      Output.line("the simulator fails without any bug: mend that first")
      throw ExitCode.failure
    }
    var missed: [String] = []
    for name in names {
      SyncPlantedTrial.plant(name)
      let count = await caught(name)
      Output.line(
        (name + String(repeating: " ", count: 28)).prefix(28)
          + "caught in \(count) of \(seeds) seeds")
      if count == 0 { missed.append(name) }
    }
    SyncPlantedTrial.plant(nil)
    guard missed.isEmpty else {
      Output.line("never caught: " + missed.joined(separator: ", "))
      throw ExitCode.failure
    }
    Output.line("all \(names.count) planted bugs were caught")
  }

  private func caught(_ name: String?) async -> Int {
    await withTaskGroup(of: Int.self) { group in
      for worker in 0..<workers {
        group.addTask {
          stride(from: worker, to: seeds, by: workers).count { index in
            SyncPlantedTrial.isNoticed(name, seed: firstSeed &+ UInt64(index))
          }
        }
      }
      return await group.reduce(0, +)
    }
  }
}
