@_spi(Campaigns) import TidemarkTestKit

/// Runs a campaign over many seeds, some at a time; what one seed gives depends on nothing else.
struct WorkerPool {
  var campaign: Campaign
  var firstSeed: UInt64
  /// How many seeds; nil for as many as the time allows.
  var runs: Int?
  var minutes: Double?
  var workers: Int
  var encrypted: Bool

  /// The findings of all workers.
  struct Outcome: Sendable {
    var report = CampaignReport()
    var seeds = 0
    /// Seeds that the end of the time has cut short.
    var cutShort = 0
    var seconds = 0.0
    /// The failure of the least seed.
    var failure: CampaignFailure?

    /// Prints figures.
    func print(showsTrace: Bool) {
      let others = cutShort > 0 ? " and a part of \(cutShort)" : ""
      Output.line(
        "\(seeds) seeds\(others), \(report.runs) runs, \(report.statesChecked) states checked")
      let rate = seconds > 0 ? Double(report.runs) / seconds : 0
      Output.line("\(Int(seconds * 10) / 10) s, \(Int(rate)) runs a second")
      if report.injected.total > 0 { Output.line("fired: \(report.injected)") }
      for (name, count) in report.notes.sorted(by: { $0.key < $1.key }) {
        Output.line("\(name): \(count)")
      }
      if showsTrace { Output.line("trace \(String(report.traceHash, radix: 16))") }
    }
  }

  func run() async -> Outcome {
    let clock = ContinuousClock()
    let start = clock.now
    let end = minutes.map { start + .seconds($0 * 60) }
    var outcome = await withTaskGroup(of: Outcome.self) { group in
      for worker in 0..<workers {
        group.addTask { work(worker, until: end) }
      }
      var total = Outcome()
      for await part in group {
        total.report = total.report + part.report
        total.seeds += part.seeds
        total.cutShort += part.cutShort
        if let failure = part.failure, failure.seed < total.failure?.seed ?? .max {
          total.failure = failure
        }
      }
      return total
    }
    outcome.seconds = (clock.now - start) / .seconds(1)
    return outcome
  }

  private func work(_ worker: Int, until end: ContinuousClock.Instant?) -> Outcome {
    var outcome = Outcome()
    var index = worker
    func isOver() -> Bool { end.map { ContinuousClock().now >= $0 } ?? false }
    while index < runs ?? .max, !isOver() {
      let seed = firstSeed &+ UInt64(index)
      do {
        let script = campaign.script(seed: seed)
        let report = try campaign.run(script, encrypted: encrypted, unless: isOver)
        outcome.report = outcome.report + report
        guard !report.isCutShort else {
          outcome.cutShort += 1
          break
        }
      } catch let failure as CampaignFailure {
        outcome.failure = failure
        return outcome
      } catch {
        outcome.failure = CampaignFailure(
          campaign: campaign, script: campaign.script(seed: seed), message: "\(error)")
        return outcome
      }
      outcome.seeds += 1
      index += workers
    }
    return outcome
  }
}
