internal import TidemarkEngine

/// A mistake that is planted into the engine, and the campaigns that must notice it.
@_spi(Campaigns) public struct PlantedTrial: Sendable {
  /// The mistake's name.
  public var name: String
  /// The campaigns that are run against it.
  public var campaigns: [Campaign]

  /// All there are; none in a build without `TIDEMARK_PLANTED=1`.
  public static var all: [PlantedTrial] {
    #if TIDEMARK_PLANTED
      PlantedBug.allCases.map { PlantedTrial(name: $0.rawValue, campaigns: $0.campaigns) }
        .filter { !$0.campaigns.isEmpty }
    #else
      []
    #endif
  }

  /// Plants one in all stores of this process, or takes it out again.
  /// - Parameter name: the mistake; nil for none.
  /// - Returns: false when there is no such mistake.
  @discardableResult
  public static func plant(_ name: String?) -> Bool {
    #if TIDEMARK_PLANTED
      let bug = name.flatMap(PlantedBug.init(rawValue:))
      PlantedBug.plant(bug)
      return bug != nil || name == nil
    #else
      return name == nil
    #endif
  }
}

extension Campaign {
  /// Runs a short version of the campaign on one seed, for tests that try it against many planted
  /// bugs.
  /// - Parameter seed: decides the script and the faults.
  /// - Throws: an error when the store breaks a promise.
  public func runBriefly(seed: UInt64) throws {
    let profile = ScriptProfile.all[Int(seed % UInt64(ScriptProfile.all.count))]
    switch self {
    case .crash, .recover:
      let script = Script(seed: seed, count: max(5, 20 / profile.cost), profile: profile)
      let sweep = CrashSweep(script, depth: self == .crash ? 1 : 3)
      let calls = try sweep.countCalls()
      let step = max(1, calls / 24)
      _ = try sweep.run(calls: stride(from: 1 + Int(seed) % step, through: calls, by: step))
    case .errors:
      let sweep = ErrorSweep(
        Script(seed: seed, count: max(5, 12 / profile.cost), profile: profile))
      let trace = try sweep.trace()
      // Most bugs in what follows an error are in what follows a failed sync.
      let syncs = trace.indices.filter { trace[$0].operation == .sync }.map { $0 + 1 }
      let step = max(1, syncs.count / 5)
      _ = try sweep.run(
        calls: stride(from: Int(seed) % step, to: syncs.count, by: step).map { syncs[$0] },
        of: trace)
    case .bits: _ = try bits(script(seed: seed &* 7919), parts: 40_000, others: 3)
    case .model:
      // Bugs of recovery take sorted runs and cuts that are close to each other.
      var restless = profile.withCrashes(kills: 20, powerCuts: 60)
      restless.weights[.snapshot] = 60
      _ = try model(Script(seed: seed, count: 250 / profile.cost, profile: restless))
    case .soak: _ = try soak(script(seed: seed))
    case .manifest: _ = try GenerationSweep(seed: seed).run(every: 3)
    case .indexes: _ = try IndexSweep(seed: seed).run(every: 3)
    case .reads: _ = try reads(script(seed: seed))
    case .versions:
      var sweep = VersionSweep(seed: seed)
      _ = try sweep.run()
    }
  }
}

#if TIDEMARK_PLANTED
  extension PlantedBug {
    /// The campaigns that are there to notice it, the likelier first.
    fileprivate var campaigns: [Campaign] {
      switch self {
      case .segmentNotSynced, .durableTooSoon, .logDirectoryNotSynced, .firstManifestNotSynced,
        .oneManifestCopy, .compactedSegmentNotSynced, .compactedNameNotSynced,
        .inputsRemovedFirst, .runAheadOfLog, .halfBatchKept:
        [.crash, .recover, .errors, .model]
      case .generationSwitchedHalf: [.manifest]
      case .rowsInOwnCommit, .formerRowsKept, .unknownWriterUnmarked, .projectionAheadOfState,
        .projectionUnpinned:
        [.indexes]
      case .unknownFieldsByPlace, .unindexedUntold, .formNotInIndex: [.versions]
      // The simulator of replication is there for this: scripts do not read through caches.
      case .readsExtendValidity, .cachedAsOwned: []
      // `Tools/torture caches --bug` notices these.
      case .overtakenAnswerKept, .varyNotRenewed, .cacheSweepForgotten: []
      case .failedSyncRetried, .tailNotRewritten: [.errors]
      case .blockChecksumIgnored, .headsChecksumIgnored, .locatorChecksumIgnored,
        .damageTakenForTornTail:
        [.bits]
      case .tombstoneDroppedEarly, .mergedOutOfOrder, .windowForgotten, .outdatedRunKept,
        .viewsForgotten, .sequenceReused, .lastEntryLostAtSealing, .cacheNotInvalidated,
        .labelsNotUpdated, .ownedEvicted, .evictionDroppedEarly, .cachedLinkDangles,
        .linkEndsAtDelete, .deleteForgottenOverRuns,
        .lostLabelForgotten:
        [.model, .crash]
      }
    }
  }
#endif
