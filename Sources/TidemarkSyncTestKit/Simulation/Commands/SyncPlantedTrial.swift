internal import TidemarkEngine
internal import TidemarkSync

/// Mistakes that are planted into replication to see that simulations notice them.
@_spi(Campaigns) public enum SyncPlantedTrial {
  /// The names of all there are; none in a build without `TIDEMARK_PLANTED=1`.
  public static var all: [String] {
    #if TIDEMARK_PLANTED
      PlantedSyncBug.allCases.filter { !PlantedSyncBug.ofRequests.contains($0) }.map(\.rawValue)
        + cacheBugs.map(\.rawValue)
    #else
      []
    #endif
  }

  /// The names of the mistakes that a store makes with a peer of requests.
  public static var ofRequests: [String] {
    #if TIDEMARK_PLANTED
      PlantedSyncBug.ofRequests.map(\.rawValue)
    #else
      []
    #endif
  }

  #if TIDEMARK_PLANTED
    /// Mistakes of caches, which the simulator sees beside replication.
    private static let cacheBugs: [PlantedBug] = [
      .ownedEvicted, .readsExtendValidity, .cachedAsOwned,
    ]
  #endif

  /// Whether a mistake that is planted is noticed: one that tells callers what their tokens do not
  /// reach by an intruder, one of servers that share a database by their simulation, others by the
  /// simulator.
  /// - Parameters:
  ///   - name: the mistake; nil for none, which nobody is to notice.
  ///   - seed: of the trial.
  public static func isNoticed(_ name: String?, seed: UInt64) -> Bool {
    let bug = name.flatMap(PlantedSyncBug.init(rawValue:))
    let tells = [.waitingContentShared, .attachmentLent].contains(bug)
    let isOfClusters = bug.map(PlantedSyncBug.ofClusters.contains) ?? false
    do {
      if tells || name == nil { _ = try ReachTrial(seed: seed).run() }
      if isOfClusters || name == nil { try ClusterSimulation(seed: seed).run() }
      if !tells, !isOfClusters { try SyncSimulation(seed: seed).run() }
      return false
    } catch { return true }
  }

  /// Plants one in all stores of this process, or takes it out again.
  /// - Parameter name: the mistake; nil for none.
  /// - Returns: false when there is no such mistake.
  @discardableResult
  public static func plant(_ name: String?) -> Bool {
    #if TIDEMARK_PLANTED
      let bug = name.flatMap(PlantedSyncBug.init(rawValue:))
      PlantedSyncBug.plant(bug)
      let cacheBug = cacheBugs.first { $0.rawValue == name }
      PlantedBug.plant(cacheBug)
      return bug != nil || cacheBug != nil || name == nil
    #else
      return name == nil
    #endif
  }
}
