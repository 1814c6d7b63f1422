import ArgumentParser
@_spi(Campaigns) import TidemarkSyncTestKit

/// Trials of a seed each: attacks upon a server by calls with the names of others, or servers that
/// share a database.
struct TrialRun {
  var trial: @Sendable (UInt64) throws -> SyncSimulationReport
  var firstSeed: UInt64
  var runs: Int
  var workers: Int
  /// A bug to plant first.
  var bug: String?

  /// - Throws: when a trial has failed.
  func run() async throws {
    guard SyncPlantedTrial.plant(bug) else {
      throw ValidationError("this build has no planted bug \(bug ?? "")")
    }
    let start = ContinuousClock.now
    let (report, failures) = await runAll()
    let time = (ContinuousClock.now - start) / .seconds(1)
    Output.line("\(runs) seeds in \(Int(time)) s, \(failures.count) failed")
    Output.line("\(report)")
    for failure in failures.prefix(5) { Output.line("FAILED: \(failure)") }
    guard failures.isEmpty else { throw ExitCode.failure }
  }

  private func runAll() async -> (SyncSimulationReport, [any Error]) {
    await withTaskGroup(of: (SyncSimulationReport, [any Error]).self) { group in
      for worker in 0..<workers {
        group.addTask {
          var (report, failures) = (SyncSimulationReport(), [any Error]())
          for index in stride(from: worker, to: runs, by: workers) {
            do { report = report + (try trial(firstSeed &+ UInt64(index))) } catch {
              failures.append(error)
            }
          }
          return (report, failures)
        }
      }
      return await group.reduce((SyncSimulationReport(), [])) { ($0.0 + $1.0, $0.1 + $1.1) }
    }
  }
}
