import ArgumentParser
@_spi(Campaigns) import TidemarkSyncTestKit
@_spi(Campaigns) import TidemarkTestKit

@main
struct Torture: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Tries to make a store lose something or answer wrongly.",
    discussion: """
      Every run depends on its seed only. A failure is printed with the shortest script that still
      fails, which is also written to a file for --replay. Exit status 1 means that one was found.
      """)

  @Argument(
    help: """
      One of crash, recover, errors, reads, bits, model, soak, manifest, indexes, versions, \
      collection, kill, sync, reach, cluster, rest, caches, planted, planted-sync, planted-rest.
      """)
  var campaign: String

  @Option(help: "The first seed.")
  var seed: UInt64 = 1

  @Option(
    help: """
      How many seeds (kills for kill and collection); without it and --minutes, ten; 66 for planted.
      """)
  var runs: Int?

  @Option(help: "Goes on to further seeds for this long; the last ones may be cut short.")
  var minutes: Double?

  @Option(help: "How many work at a time; by default one a core.")
  var workers: Int?

  @Option(help: "Runs the script in this file again.")
  var replay: String?

  @Option(help: "Plants this bug first, in a build with TIDEMARK_PLANTED=1.")
  var bug: String?

  @Flag(help: "Encrypts the store.")
  var encrypted = false

  @Flag(help: "Prints a hash of all calls that were made: equal seeds give equal hashes.")
  var trace = false

  @Option(help: "Where kill puts its store, and where failing scripts are written.")
  var directory = "."

  @Option(help: "The records of a collection: NDJSON as logtool export writes it, or that in zstd.")
  var records: String?

  @Option(help: "The only trial of caches: reads, exchanges, rules or launches.")
  var trial: String?

  @Option(help: "Lines that are new or other ones in its next version.")
  var updates: String?

  func validate() throws {
    guard (1...256).contains(workers ?? 1), (1...1_000_000_000).contains(runs ?? 1) else {
      throw ValidationError("--workers takes 1 to 256, --runs at least 1")
    }
    let others = [
      "kill", "kill-child", "collection", "collection-child", "caches", "planted", "sync",
      "planted-sync", "reach", "cluster", "rest", "planted-rest",
    ]
    guard others.contains(campaign) || Campaign(rawValue: campaign) != nil else {
      throw ValidationError("there is no campaign \(campaign)")
    }
  }

  func run() async throws {
    switch campaign {
    case "planted":
      try await PlantedRun(
        firstSeed: seed, seeds: runs ?? 66, workers: workers ?? Cores.count, bug: bug
      ).run()
    case "sync":
      try await SyncRun(
        firstSeed: seed, runs: runs ?? (minutes == nil ? 100 : nil), minutes: minutes,
        workers: workers ?? Cores.count, bug: bug, directory: directory, showsTrace: trace
      ).run(replay: replay)
    case "rest", "planted-rest":
      let isPlanted = campaign == "planted-rest"
      let run = RestRun(
        firstSeed: seed, runs: runs ?? (isPlanted ? 400 : minutes == nil ? 100 : nil),
        minutes: minutes, workers: workers ?? Cores.count, bug: bug, directory: directory,
        showsTrace: trace)
      if isPlanted { try await run.runPlanted() } else { try await run.run(replay: replay) }
    case "reach", "cluster":
      let isReach = campaign == "reach"
      try await TrialRun(
        trial: { isReach ? try ReachTrial(seed: $0).run() : try ClusterSimulation(seed: $0).run() },
        firstSeed: seed, runs: runs ?? 100, workers: workers ?? Cores.count, bug: bug
      ).run()
    case "caches":
      try await CacheRun(
        firstSeed: seed, runs: runs ?? (minutes == nil ? 100 : nil), minutes: minutes,
        workers: workers ?? Cores.count, bug: bug, trial: trial
      ).run()
    case "planted-sync":
      try await SyncPlantedRun(
        firstSeed: seed, seeds: runs ?? 400, workers: workers ?? Cores.count, bug: bug
      ).run()
    case "kill-child": try KillChild(directory: directory, seed: seed).run()
    case "kill":
      try KillCampaign(directory: directory, seed: seed, kills: runs ?? 100, minutes: minutes)
        .run()
    case "collection", "collection-child": try await runCollection()
    default:
      guard let campaign = Campaign(rawValue: campaign) else { return }
      guard PlantedTrial.plant(bug) else {
        throw ValidationError("this build has no planted bug \(bug ?? "")")
      }
      if let replay {
        try Failures.replay(replay, campaign, encrypted: encrypted)
      } else {
        try await run(campaign)
      }
    }
  }

  private func runCollection() async throws {
    guard let records, let updates else {
      throw ValidationError("collection takes --records FILE --updates FILE")
    }
    guard campaign == "collection-child" else {
      return try await CollectionRun(
        directory: directory, seed: seed, kills: runs ?? 20, records: records, updates: updates
      ).run()
    }
    try await CollectionRun.child(
      directory, number: Int(clamping: seed), records: records, updates: updates)
  }

  private func run(_ campaign: Campaign) async throws {
    let pool = WorkerPool(
      campaign: campaign, firstSeed: seed, runs: runs ?? (minutes == nil ? 10 : nil),
      minutes: minutes, workers: workers ?? Cores.count, encrypted: encrypted)
    let outcome = await pool.run()
    outcome.print(showsTrace: trace)
    if let failure = outcome.failure {
      Output.line("FAILED: \(failure.message)\nlooking for the shortest script that fails ...")
      let end = ContinuousClock.now + .seconds(300)
      let shortest = campaign.shortest(failure, encrypted: encrypted) {
        let limit = min(end, .now + .seconds(20))
        return { ContinuousClock.now > limit }
      }
      try Failures.report(shortest, directory: directory)
      throw ExitCode.failure
    }
    // A part of one seed need not have met everything.
    guard outcome.seeds > 0 else { return }
    let idle = outcome.report.injected.missing(of: campaign.expectedKinds)
    guard idle.isEmpty else {
      Output.line("never fired: " + idle.map(\.rawValue).joined(separator: ", "))
      throw ExitCode.failure
    }
  }
}
