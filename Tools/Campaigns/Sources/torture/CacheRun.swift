import ArgumentParser
import CacheTrials
@_spi(Campaigns) import TidemarkTestKit

/// Runs the trials of the caches over many seeds, some at a time.
struct CacheRun {
  var firstSeed: UInt64
  /// How many seeds of each trial; nil for as many as the time allows.
  var runs: Int?
  var minutes: Double?
  var workers: Int
  /// A bug to plant first.
  var bug: String?
  /// The only trial; nil for all of them.
  var trial: String?

  private struct Failure: Sendable {
    let trial: CacheTrial
    let seed: UInt64
    let message: String
  }

  /// A worker goes on after so many failures at most.
  private static let mostFailures = 5

  func run() async throws {
    guard PlantedTrial.plant(bug) else {
      throw ValidationError("this build has no planted bug \(bug ?? "")")
    }
    guard trial.map({ CacheTrial(rawValue: $0) != nil }) ?? true else {
      throw ValidationError("there is no trial \(trial ?? "") of caches")
    }
    guard await TaskQueue.install() else {
      throw ValidationError("this system's runtime has no hook for a queue of tasks")
    }
    let end = minutes.map { ContinuousClock.now + .seconds($0 * 60) }
    let (counts, seeds, failures) = await runAll(until: end)
    Output.line("\(seeds) seeds of each trial")
    Output.line(
      counts.sorted { $0.key < $1.key }.map { "\($0.key) \($0.value)" }.joined(separator: ", "))
    for failure in failures.sorted(by: { $0.seed < $1.seed }) {
      Output.line("FAILED: \(failure.trial.rawValue), seed \(failure.seed): \(failure.message)")
    }
    if !failures.isEmpty { throw ExitCode.failure }
  }

  private func runAll(
    until end: ContinuousClock.Instant?
  ) async -> (counts: [String: Int], seeds: Int, failures: [Failure]) {
    await withTaskGroup(of: ([String: Int], Int, [Failure]).self) { group in
      for worker in 0..<workers { group.addTask { await work(worker, until: end) } }
      var total: (counts: [String: Int], seeds: Int, failures: [Failure]) = ([:], 0, [])
      for await part in group {
        total.counts.merge(part.0, uniquingKeysWith: +)
        total.seeds += part.1
        total.failures += part.2
      }
      return total
    }
  }

  private func work(
    _ worker: Int, until end: ContinuousClock.Instant?
  ) async -> ([String: Int], Int, [Failure]) {
    var counts: [String: Int] = [:]
    var failures: [Failure] = []
    var seeds = 0
    while seeds * workers + worker < runs ?? .max, failures.count < Self.mostFailures {
      if let end, ContinuousClock.now >= end { break }
      let seed = firstSeed &+ UInt64(seeds * workers + worker)
      for trial in CacheTrial.allCases where self.trial ?? trial.rawValue == trial.rawValue {
        // Launches take longest, and most seeds find the same.
        if trial == .launches, self.trial == nil, seed % 20 != 0 { continue }
        do {
          for (event, count) in try await trial.run(seed: seed) {
            counts["\(trial.rawValue) \(event)", default: 0] += count
          }
        } catch { failures.append(Failure(trial: trial, seed: seed, message: "\(error)")) }
      }
      seeds += 1
    }
    return (counts, seeds, failures)
  }
}
