import ArgumentParser
@_spi(Campaigns) import TidemarkSyncTestKit

/// Attacks a server by calls with the names of others: a thousand calls for each seed.
struct ReachRun {
  var firstSeed: UInt64
  var runs: Int
  var workers: Int
  /// A bug to plant first.
  var bug: String?

  /// - Throws: when a call has told something, or nobody has told anything.
  func run() async throws {
    guard SyncPlantedTrial.plant(bug) else {
      throw ValidationError("this build has no planted bug \(bug ?? "")")
    }
    let start = ContinuousClock.now
    let (report, leaks) = await runAll()
    let time = (ContinuousClock.now - start) / .seconds(1)
    Output.line("\(runs) seeds of 1,000 calls in \(Int(time)) s")
    Output.line("\(report)")
    for leak in leaks.prefix(5) { Output.line("FAILED: \(leak)") }
    guard leaks.isEmpty else { throw ExitCode.failure }
  }

  private func runAll() async -> (SyncSimulationReport, [ReachLeak]) {
    await withTaskGroup(of: (SyncSimulationReport, [ReachLeak]).self) { group in
      for worker in 0..<workers {
        group.addTask {
          var (report, leaks) = (SyncSimulationReport(), [ReachLeak]())
          for index in stride(from: worker, to: runs, by: workers) {
            do throws(ReachLeak) {
              report = report + (try ReachTrial(seed: firstSeed &+ UInt64(index)).run())
            } catch { leaks.append(error) }
          }
          return (report, leaks)
        }
      }
      return await group.reduce((SyncSimulationReport(), [])) { ($0.0 + $1.0, $0.1 + $1.1) }
    }
  }
}
