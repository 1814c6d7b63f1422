/// The immutable part of an index: sorted runs on the disk (class `SortedRun`), each with the
/// newest slot of every key that was written in a range of sequences. Ranges follow each other, so
/// the newest run that has a key decides. Copies of the list may be read without any lock.
package struct RunList: Sendable {
  /// Newest first; the last one begins at sequence 0.
  package private(set) var runs: [SortedRun]

  /// - Parameter runs: newest first.
  package init(_ runs: [SortedRun] = []) { self.runs = runs }

  package var newest: SortedRun? { runs.first }

  /// The runs cover the log up to this sequence; 0 without any run.
  package var sequence: UInt64 { newest?.header.sequence ?? 0 }

  /// How many keys are not deleted; derived keys do not count.
  package var liveKeys: Int { newest?.header.totalLiveKeys ?? 0 }

  /// Bytes of memory that chunks read so far take.
  package var memoryBytes: Int { runs.reduce(0) { $0 + $1.memoryBytes } }

  /// The newest slot of a key, which may say that it is deleted; nil if no run has the key.
  /// - Parameter maySearch: whether the caller is a get, see `SortedRun.lookup`.
  package func lookup(
    _ key: RawSpan, hash: UInt64, maySearch: Bool = false
  ) throws(IndexError) -> Slot? {
    for run in runs {
      if let found = try run.lookup(key, hash: hash, maySearch: maySearch) { return found.slot }
    }
    return nil
  }

  /// The same as ``Index/isNewest(_:of:hash:)``, for entries and keys that no memtable has.
  func isNewest(_ sequence: UInt64, of key: RawSpan, hash: UInt64) throws(IndexError) -> Bool {
    for run in runs {
      // The entry is in this run's range of sequences. Newer runs do not have its key.
      if sequence > run.header.base { return try run.holds(sequence, hash: hash) }
      if try run.lookup(key, hash: hash) != nil { return false }
    }
    return false
  }

  /// Asks the processor for the memory that ``isNewest(_:of:hash:)`` will need for some keys.
  /// - Parameter keys: whether ``lookup(_:hash:)`` will come, which needs the keys' bytes, too.
  package func prefetch(_ hashes: [UInt64], keys: Bool = false) {
    for run in runs { run.prefetch(hashes, keys: keys) }
  }

  /// How many keys carry a label: the newest run that has the label counts those beneath, too.
  func count(ofLabel id: UInt32) throws(IndexError) -> Int {
    for run in runs { if let label = try run.label(id) { return label.count } }
    return 0
  }

  /// Calls `body` with every label and the number of keys that carry it.
  func forEachLabel(_ body: (UInt32, Int) -> Void) throws(IndexError) {
    var known: Set<UInt32> = []
    for run in runs {
      for number in 0..<run.labelCount {
        let label = try run.label(at: number)
        if known.insert(label.id).inserted { body(label.id, label.count) }
      }
    }
  }

  /// Puts a run in the place of the `count` newest ones.
  /// - Returns: the runs that it replaces.
  mutating func replace(newest count: Int, by run: SortedRun) -> [SortedRun] {
    let gone = Array(runs.prefix(count))
    runs.replaceSubrange(0..<gone.count, with: [run])
    return gone
  }

  /// How many of the newest runs should be merged with a new one, so that there are few runs and
  /// each is much larger than those above: every key is then rewritten about once per size.
  /// - Parameters:
  ///   - keys: how many keys the new run has.
  ///   - least: a smaller new run counts as one of this many keys.
  ///   - isBounded: whether the merge must be short: larger runs are then left for a later one,
  ///     unless there are `Limits.runs` already.
  package func countToMerge(with keys: Int, least: Int, isBounded: Bool) -> Int {
    var size = max(keys, least)
    let most = isBounded && runs.count < Limits.runs ? size * Limits.runGrowth * 2 : Int.max
    var count = 0
    while count < runs.count, runs[count].count <= size * Limits.runGrowth {
      guard size + runs[count].count <= most else { break }
      size += runs[count].count
      count += 1
    }
    // A full list takes no run more: the new one must replace at least one.
    return runs.count < Limits.runs ? count : max(count, 1)
  }

  /// Whether a run is too large for the one beneath it: a merge of the two was left for later.
  package func isUneven(least: Int) -> Bool {
    zip(runs, runs.dropFirst()).contains { upper, lower in
      lower.count <= max(upper.count, least) * Limits.runGrowth
    }
  }
}
