internal import TidemarkEngine

/// The long campaigns, one seed at a time; the command `Tools/torture` runs them.
@_spi(Campaigns) public enum Campaign: String, Sendable, CaseIterable {
  /// Power cuts at the calls of a script.
  case crash
  /// The same, with further cuts during recovery.
  case recover
  /// Errors at every call of a script.
  case errors
  /// Damage to the files of a store: a thousand seeds in a row flip every bit and cut every file
  /// at every length.
  case bits
  /// Random operations, compared with the model.
  case model
  /// A long life, in which memory, open files and disk must reach a plateau.
  case soak
  /// Crashes while a cache is brought to one generation of a collection after the other.
  case manifest
  /// Crashes at every call of a program that writes objects with indexes.
  case indexes
  /// Verifying, repairing, backups, compaction and reading while reads of the disk fail.
  case reads
  /// Two versions of a program over one store.
  case versions

  /// The script that a seed stands for.
  public func script(seed: UInt64) -> Script {
    let profile = ScriptProfile.all[Int(seed % UInt64(ScriptProfile.all.count))]
    switch self {
    case .crash, .recover, .errors, .reads:
      return Script(seed: seed, count: max(5, 24 / profile.cost), profile: profile)
    case .bits: return Script(seed: seed, steps: BitSweep.sampleSteps)
    case .model:
      let mixed = seed % 4 == 3 ? profile.withCrashes(kills: 3, powerCuts: 3) : profile
      return Script(seed: seed, count: 2000 / (profile.cost * profile.cost), profile: mixed)
    case .soak, .manifest, .indexes, .versions: return Script(seed: seed, steps: [])
    }
  }

  /// The faults that must have been injected at least once.
  public var expectedKinds: [InjectedKind] {
    switch self {
    case .crash, .recover: [.sectorLost, .sectorTorn, .sectorKept, .nameLost, .lengthLost]
    case .errors:
      [
        .error, .shortTransfer, .syncLeavesPagesClean, .syncRevertsPages, .syncFailsLate, .diskFull,
      ]
    case .reads: [.error]
    case .bits, .model, .soak, .manifest, .indexes, .versions: []
    }
  }

  /// Carries the campaign out on one script.
  /// - Parameters:
  ///   - encrypted: whether the store is encrypted, which needs the trait `Encryption`.
  ///   - shouldStop: asked again and again; once it says yes, the rest is left out, and what was
  ///     done by then is told of as ``CampaignReport/isCutShort``.
  /// - Throws: ``CampaignFailure`` when the store does not do what it must.
  public func run(
    _ script: Script, encrypted: Bool = false, unless shouldStop: () -> Bool = { false }
  ) throws -> CampaignReport {
    var isCutShort = false
    func stops() -> Bool {
      isCutShort = isCutShort || shouldStop()
      return isCutShort
    }
    do {
      let configuration = try EngineConfiguration.campaign(encrypted: encrypted)
      var report =
        switch self {
        case .crash: try crash(script, configuration, depth: 1, unless: stops)
        case .recover: try crash(script, configuration, depth: 3, unless: stops)
        case .errors: try errors(script, configuration, unless: stops)
        case .bits: try bits(script, configuration, unless: stops)
        case .model: try model(script, configuration, unless: stops)
        case .soak: try soak(script, configuration, unless: stops)
        case .manifest: try manifest(script, configuration, unless: stops)
        case .indexes: try indexes(script, configuration, unless: stops)
        case .reads: try reads(script, configuration, unless: stops)
        case .versions: try versions(script, configuration, unless: stops)
        }
      report.isCutShort = isCutShort
      return report
    } catch let violation as ScriptViolation {
      throw CampaignFailure(campaign: self, script: script, message: violation.description)
    }
  }

  /// The shortest script found that fails as well.
  /// - Parameters:
  ///   - encrypted: whether the store is encrypted.
  ///   - attempts: how many scripts are tried.
  ///   - stops: called at the begin of each trial; what it returns is asked all through it, and
  ///     ends the trial without a failure. So a campaign that takes minutes for a script that
  ///     passes does not hold up the search.
  public func shortest(
    _ failure: CampaignFailure, encrypted: Bool = false, attempts: Int = 200,
    stops: () -> () -> Bool = { { false } }
  ) -> CampaignFailure {
    var best = failure
    _ = shrink(failure.script, attempts: attempts) { candidate in
      do {
        _ = try run(candidate, encrypted: encrypted, unless: stops())
        return false
      } catch {
        if let failure = error as? CampaignFailure { best = failure }
        return true
      }
    }
    return best
  }

  private func crash(
    _ script: Script, _ configuration: EngineConfiguration, depth: Int,
    unless shouldStop: () -> Bool
  ) throws -> CampaignReport {
    let sweep = CrashSweep(script, configuration: configuration, depth: depth)
    let calls = try sweep.countCalls()
    let result = try sweep.run(calls: 1...max(1, calls), unless: shouldStop)
    var report = CampaignReport()
    report.runs = result.crashes
    report.statesChecked = result.statesChecked
    report.injected = result.injected
    report.traceHash = result.traceHash
    return report
  }

  private func errors(
    _ script: Script, _ configuration: EngineConfiguration, unless shouldStop: () -> Bool
  ) throws -> CampaignReport {
    let sweep = ErrorSweep(script, configuration: configuration)
    let trace = try sweep.trace()
    var result = try sweep.run(calls: 1...trace.count, of: trace, unless: shouldStop)
    result = result + (try sweep.run(fullFrom: script.steps.indices, unless: shouldStop))
    var report = CampaignReport()
    report.runs = result.injections
    report.statesChecked = result.statesChecked
    report.injected = result.injected
    report.traceHash = result.traceHash
    report.notes = [
      "errors seen": result.errorsSeen, "same handle went on": result.resumed,
      "opened again": result.reopened, "lies found out": result.found,
    ]
    return report
  }
}

/// The outcome of a campaign.
@_spi(Campaigns) public struct CampaignReport: Sendable {
  /// How many crash sorted runs, injections or operations there were.
  public var runs = 0
  /// How many states were compared.
  public var statesChecked = 0
  /// The faults that were really injected.
  public var injected = InjectionCounts()
  /// Other counts, by name.
  public var notes: [String: Int] = [:]
  /// Tells one trace from another.
  public var traceHash: UInt64 = 0
  /// Whether it was told to stop before all was done.
  public var isCutShort = false

  /// Creates an empty one.
  public init() {}

  /// Two reports together, in whichever order.
  public static func + (a: CampaignReport, b: CampaignReport) -> CampaignReport {
    var sum = a
    sum.isCutShort = a.isCutShort || b.isCutShort
    sum.runs += b.runs
    sum.statesChecked += b.statesChecked
    sum.injected = a.injected + b.injected
    sum.notes.merge(b.notes) { $0 + $1 }
    sum.traceHash = a.traceHash &+ b.traceHash
    return sum
  }
}

/// A store that did not do what it must.
@_spi(Campaigns) public struct CampaignFailure: Error, CustomStringConvertible {
  /// The campaign that was run.
  public var campaign: Campaign
  /// On which script.
  public var script: Script
  /// The failure, in words.
  public var message: String
  /// The script's seed.
  public var seed: UInt64 { script.seed }

  /// Creates one.
  public init(campaign: Campaign, script: Script, message: String) {
    self.campaign = campaign
    self.script = script
    self.message = message
  }

  /// The failure as a text that can be kept in a file and run again.
  public var description: String {
    "# \(message)\n# campaign \(campaign.rawValue)\n\(script)"
  }
}
