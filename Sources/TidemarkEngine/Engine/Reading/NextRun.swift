/// The next run of the index, as far as its content is settled; under `reading`.
struct NextRun {
  /// The image that the frozen delta is to become, while there is one.
  private(set) var frozen: ImageInfo?
  /// Counts up when the index is made anew: a run begun before must not be taken into use.
  private(set) var generation = 0
  /// Deletes up to here are left out of the index, but for those in `keptDeletes`: compactions
  /// have let them go.
  private var forgetsDeletesThrough: UInt64 = 0
  /// Deletes that the last compaction has kept for peers.
  private var keptDeletes: Set<UInt64> = []

  mutating func forgetDeletes(through limit: UInt64, but kept: Set<UInt64>) {
    forgetsDeletesThrough = limit
    keptDeletes = kept
  }

  /// Settles a run. A delta that was frozen for one that could not be written comes first.
  /// - Parameters:
  ///   - id: of the run.
  ///   - fresh: a run of everything so far.
  ///   - historyFrom: views of earlier states are refused, so nobody asks for former members.
  mutating func begin(
    _ id: UInt64, historyFrom: UInt64, else fresh: ImageInfo
  ) -> ImageInfo {
    var info = frozen ?? fresh
    info.imageID = id
    info.dropTombstonesThrough = forgetsDeletesThrough
    info.keptDeletes = keptDeletes
    info.keepFormerMembers = historyFrom < info.sequence
    frozen = info
    return info
  }

  /// The run is in use.
  mutating func end() { frozen = nil }

  /// The index was made anew.
  mutating func startOver() {
    frozen = nil
    generation += 1
  }

  /// The log was read anew, and others may have written it: its deletes are all known again.
  mutating func startOverWithLog() {
    startOver()
    forgetDeletes(through: 0, but: [])
  }
}
