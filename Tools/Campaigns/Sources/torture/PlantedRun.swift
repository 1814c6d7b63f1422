import ArgumentParser
@_spi(Campaigns) import TidemarkTestKit

/// Plants one mistake after the other into the engine, and counts the seeds in which the
/// campaigns notice it.
struct PlantedRun {
  var firstSeed: UInt64
  var seeds: Int
  var workers: Int
  /// Only this one; nil for all.
  var bug: String?

  /// - Throws: when one was not noticed, or something was although nothing was planted.
  func run() async throws {
    let trials = PlantedTrial.all.filter { bug == nil || $0.name == bug }
    guard !trials.isEmpty else {
      throw ValidationError(
        PlantedTrial.all.isEmpty
          ? "this build has no planted bugs; run TIDEMARK_PLANTED=1 Tools/torture planted"
          : "there is no planted bug \(bug ?? "")")
    }
    PlantedTrial.plant(nil)
    var hasFailed = false
    for campaign in Campaign.allCases
    where trials.contains(where: { $0.campaigns.contains(campaign) }) {
      let failed = await caught(campaign)
      report("nothing planted", campaign, failed)
      if failed > 0 { hasFailed = true }
    }
    var missed: [String] = []
    for trial in trials {
      PlantedTrial.plant(trial.name)
      var total = 0
      for campaign in trial.campaigns {
        let count = await caught(campaign)
        report(trial.name, campaign, count)
        total += count
        // The other campaigns are for what this one does not see.
        if total > 0 { break }
      }
      if total == 0 { missed.append(trial.name) }
    }
    PlantedTrial.plant(nil)
    if hasFailed { Output.line("a campaign fails without any bug: mend that first") }
    if !missed.isEmpty { Output.line("never caught: " + missed.joined(separator: ", ")) }
    guard missed.isEmpty, !hasFailed else { throw ExitCode.failure }
    Output.line("all \(trials.count) planted bugs were caught")
  }

  private func report(_ name: String, _ campaign: Campaign, _ count: Int) {
    let padded = (name + String(repeating: " ", count: 28)).prefix(28)
    let kind = (campaign.rawValue + String(repeating: " ", count: 8)).prefix(8)
    Output.line("\(padded)\(kind) caught in \(count) of \(seeds) seeds")
  }

  /// In how many seeds a campaign fails.
  private func caught(_ campaign: Campaign) async -> Int {
    await withTaskGroup(of: Int.self) { group in
      for worker in 0..<workers {
        group.addTask {
          stride(from: worker, to: seeds, by: workers).count { index in
            do { try campaign.runBriefly(seed: firstSeed &+ UInt64(index)) } catch { return true }
            return false
          }
        }
      }
      return await group.reduce(0, +)
    }
  }
}
