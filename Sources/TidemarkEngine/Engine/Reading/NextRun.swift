/// What the next checkpoint of the index is to contain. A checkpoint freezes the memtable
/// ("memtable") and writes a sorted run of it. A part of ``ReadState``, under the readers' lock.
struct NextRun {
  /// The run that the frozen memtable is to become; nil while no memtable is frozen.
  var frozen: RunInfo?
  /// Counts up when the index is rebuilt: a run begun before must not be published.
  private(set) var generation = 0
  /// Tombstones up to here are left out of a run of the whole index, but for `keptDeletes`:
  /// compaction is about to drop them from the log, or has done so.
  private var dropTombstonesThrough: UInt64 = 0
  /// Sequences of deletes that the last compaction has kept in the log for peers.
  private var keptDeletes: Set<UInt64> = []

  mutating func forgetDeletes(through limit: UInt64, but kept: Set<UInt64>) {
    dropTombstonesThrough = limit
    keptDeletes = kept
  }

  /// Decides what a run contains. If the run before could not be written, its memtable is still
  /// frozen: then the new run is of that memtable, and covers no later sequences.
  /// - Parameters:
  ///   - historyFrom: the oldest state of a view; only views before the run ask for former labels.
  ///   - fresh: a run of the memtable that was just frozen.
  mutating func begin(_ id: UInt64, historyFrom: UInt64, else fresh: RunInfo) -> RunInfo {
    var info = frozen ?? fresh
    info.runID = id
    info.dropTombstonesThrough = dropTombstonesThrough
    info.keptDeletes = keptDeletes
    info.keepFormerMembers = historyFrom < info.sequence
    frozen = info
    return info
  }

  mutating func indexWasRebuilt() {
    frozen = nil
    generation += 1
  }

  /// The state was read again from the disk, and another process may have written deletes: the next
  /// run keeps all until a compaction of this process says otherwise.
  mutating func logWasReread() {
    indexWasRebuilt()
    forgetDeletes(through: 0, but: [])
  }
}
