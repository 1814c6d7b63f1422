internal import Tidemark
internal import TidemarkSyncServer

/// When the server compacts its databases.
public struct CompactionSettings: Sendable {
  /// For how long superseded versions are kept. Tombstones are kept longer where a lease needs
  /// them.
  public var history = Duration.seconds(7 * 86_400)
  /// How often databases are checked; zero for never.
  public var interval = Duration.seconds(60)
  /// How often a database with few writes is checked, and how often a closed one.
  public var longInterval = Duration.seconds(3600)
  public var closedInterval = Duration.seconds(86_400)
  /// A compaction must free at least so many bytes, by estimate.
  public var leastBytes = 8 << 20
  /// It must also free at least this part of the log, in percent.
  public var leastPercent = 30

  /// The defaults.
  public init() {}

  /// Whether the server compacts at all.
  var isOn: Bool { interval > .zero }

  /// Whether a compaction of a database is worth it.
  /// - Parameter leftover: the bytes that were estimated as reclaimable right after the last
  ///   compaction, which shows the estimate's error.
  func isWorth(_ space: LogSpace, leftover: Int) -> Bool {
    let gain = space.reclaimable - leftover
    if gain >= leastBytes, gain >= space.log / 100 * leastPercent { return true }
    // How many bytes of records and tombstones can go, only a compaction finds out: it is also
    // worth it once the log has doubled.
    return space.appended >= max(leastBytes, space.log - space.appended)
  }
}
