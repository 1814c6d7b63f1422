import ArgumentParser
@_spi(Campaigns) import TidemarkSyncTestKit

/// Runs the simulator of replication with a REST back end over many seeds, some at a time.
struct RestRun {
  var firstSeed: UInt64
  /// How many seeds; nil for as many as the time allows.
  var runs: Int?
  var minutes: Double?
  var workers: Int
  /// A bug to plant first.
  var bug: String?
  var directory: String
  var showsTrace: Bool

  /// - Parameter replay: a file with a script to run instead.
  func run(replay: String?) async throws {
    guard SyncPlantedTrial.plant(bug) else {
      throw ValidationError("this build has no planted bug \(bug ?? "")")
    }
    if let replay {
      let simulation = try RestSimulation(RestScript(parsing: Files.read(replay)))
      let tell: (@Sendable (String) -> Void)? = showsTrace ? { @Sendable in Output.line($0) } : nil
      do throws(RestViolation) { try await simulation.run(narrating: tell) } catch {
        Output.line("FAILED: \(error.message)")
        throw ExitCode.failure
      }
      return Output.line("holds")
    }
    let start = ContinuousClock.now
    let (seeds, violations) = await runAll(until: minutes.map { start + .seconds($0 * 60) })
    let seconds = Int((ContinuousClock.now - start) / .seconds(1))
    Output.line("\(seeds) seeds in \(seconds) s, \(workers) at a time")
    for violation in violations {
      Output.line("FAILED: seed \(violation.script.seed): \(violation.message)")
    }
    guard let violation = violations.first else { return }
    Output.line("looking for the shortest script that fails ...")
    let shortest = await RestSimulation.shortest(violation)
    Output.line("\(shortest)")
    try Files.write("\(shortest)", to: "\(directory)/rest-\(violation.script.seed).script")
    throw ExitCode.failure
  }

  /// Plants one mistake after the other, and looks for the seeds in which it is noticed.
  /// - Throws: when one was not noticed, or something was although nothing was planted.
  func runPlanted() async throws {
    let names = SyncPlantedTrial.ofRequests.filter { bug == nil || $0 == bug }
    guard !names.isEmpty else {
      throw ValidationError(
        "no such planted bug; run TIDEMARK_PLANTED=1 Tools/torture planted-rest")
    }
    var missed: [String] = []
    for name in [nil] + names.map(Optional.some) {
      SyncPlantedTrial.plant(name)
      let (seeds, violations) = await runAll(until: nil)
      Output.line("\(name ?? "nothing planted"): caught in \(violations.count) of \(seeds) seeds")
      if let name, violations.isEmpty { missed.append(name) }
      guard name != nil || violations.isEmpty else { throw ExitCode.failure }
    }
    SyncPlantedTrial.plant(nil)
    guard missed.isEmpty else {
      Output.line("never caught: " + missed.joined(separator: ", "))
      throw ExitCode.failure
    }
    Output.line("all \(names.count) planted bugs were caught")
  }

  /// The number of seeds that were run, and the failures by their seeds.
  private func runAll(until end: ContinuousClock.Instant?) async -> (Int, [RestViolation]) {
    await withTaskGroup(of: (Int, [RestViolation]).self) { group in
      for worker in 0..<workers {
        group.addTask {
          var violations: [RestViolation] = []
          var index = worker
          while index < runs ?? .max, end.map({ .now < $0 }) ?? true {
            do throws(RestViolation) {
              try await RestSimulation(seed: firstSeed &+ UInt64(index)).run()
            } catch {
              violations.append(error)
            }
            index += workers
          }
          return (index / workers, violations)
        }
      }
      var (seeds, violations) = (0, [RestViolation]())
      for await part in group {
        seeds += part.0
        violations += part.1
      }
      return (seeds, violations.sorted { $0.script.seed < $1.script.seed })
    }
  }
}
