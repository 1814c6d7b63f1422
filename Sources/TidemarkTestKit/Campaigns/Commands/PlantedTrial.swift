internal import TidemarkEngine

/// A mistake that is planted into the engine, and the campaigns that must notice it.
@_spi(Campaigns) public struct PlantedTrial: Sendable {
  /// The mistake's name.
  public var name: String
  /// What is run against it.
  public var campaigns: [Campaign]

  /// All there are; none in a build without `TIDEMARK_PLANTED=1`.
  public static var all: [PlantedTrial] {
    #if TIDEMARK_PLANTED
      PlantedBug.allCases.map { PlantedTrial(name: $0.rawValue, campaigns: $0.campaigns) }
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
  /// A script like those of the campaign, short enough for many trials.
  public func shortScript(seed: UInt64) -> Script {
    let profile = ScriptProfile.all[Int(seed % UInt64(ScriptProfile.all.count))]
    switch self {
    case .model: return Script(seed: seed, count: 300, profile: profile.withCrashes())
    case .errors: return Script(seed: seed, count: 12, profile: profile)
    default: return script(seed: seed)
    }
  }
}

#if TIDEMARK_PLANTED
  extension PlantedBug {
    /// The campaigns that are there to notice it.
    fileprivate var campaigns: [Campaign] {
      switch self {
      case .segmentNotSynced, .durableTooSoon, .logDirectoryNotSynced, .firstManifestNotSynced,
        .oneManifestCopy, .compactedSegmentNotSynced, .compactedNameNotSynced,
        .inputsRemovedFirst, .imageAheadOfLog, .halfBatchKept:
        [.crash, .recover]
      case .failedSyncRetried, .tailNotRewritten: [.errors]
      case .blockChecksumIgnored, .headsChecksumIgnored, .locatorChecksumIgnored,
        .damageTakenForTornTail:
        [.bits]
      case .tombstoneDroppedEarly, .outdatedImageKept, .viewsForgotten, .sequenceReused,
        .lastEntryLostAtSealing, .cacheNotInvalidated, .labelsNotUpdated, .linkEndsAtDelete:
        [.model]
      }
    }
  }
#endif
