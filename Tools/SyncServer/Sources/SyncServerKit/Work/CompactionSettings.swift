internal import Tidemark
internal import TidemarkSyncServer

/// When the server compacts its databases by itself.
public struct CompactionSettings: Sendable {
  /// For how long what newer writes have replaced is kept. Deletes are kept longer where a lease
  /// needs them.
  public var history = Duration.seconds(7 * 86_400)
  /// How often it looks whether there is something to do; zero for never.
  public var interval = Duration.seconds(60)
  /// How often it looks at a database where little was written, and at those that are closed.
  public var longInterval = Duration.seconds(3600)
  public var closedInterval = Duration.seconds(86_400)
  /// A compaction has to free that much, by estimate.
  public var leastBytes = 8 << 20
  /// And that much of the log, in percent.
  public var leastPercent = 30

  /// The defaults.
  public init() {}

  /// Whether it does so at all.
  var isOn: Bool { interval > .zero }

  /// Whether it is worth to compact a database.
  /// - Parameter leftover: what a compaction seemed to free right after the last one, which was
  ///   wrong then: it is an estimate.
  func isWorth(_ space: LogSpace, leftover: Int) -> Bool {
    let gain = space.reclaimable - leftover
    if gain >= leastBytes, gain >= space.log / 100 * leastPercent { return true }
    // The size of records and deletes is not known before it was looked at: once the log has
    // doubled.
    return space.appended >= max(leastBytes, space.log - space.appended)
  }
}
