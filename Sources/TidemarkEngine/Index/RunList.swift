/// The immutable part of an index: runs over each other, each of the sequences behind those of the
/// run beneath. The newest that knows a key decides.
package struct RunList: Sendable {
  /// Newest first; the last one begins at sequence 0.
  package private(set) var runs: [Image]

  /// - Parameter runs: newest first.
  package init(_ runs: [Image] = []) { self.runs = runs }

  package var newest: Image? { runs.first }

  /// The sequence that they cover; 0 without any.
  package var sequence: UInt64 { newest?.header.sequence ?? 0 }

  /// How many keys are not deleted.
  package var liveKeys: Int { newest?.header.totalLiveKeys ?? 0 }

  /// Bytes of memory that chunks read so far take.
  package var memoryBytes: Int { runs.reduce(0) { $0 + $1.memoryBytes } }

  /// The newest slot of a key.
  package func lookup(_ key: RawSpan, hash: UInt64) throws(IndexError) -> Slot? {
    for run in runs {
      if let found = try run.lookup(key, hash: hash) { return found.slot }
    }
    return nil
  }

  /// Whether a put or delete is the newest entry of its key, and was not touched since.
  func isNewest(
    _ sequence: UInt64, of key: RawSpan, hash: UInt64
  ) throws(IndexError) -> Bool {
    for run in runs {
      // A run that is newer than the entry names the key only if something replaced it.
      if sequence > run.header.base { return try run.holds(sequence, hash: hash) }
      if try run.lookup(key, hash: hash) != nil { return false }
    }
    return false
  }

  /// Asks the processor for what ``isNewest(_:of:hash:)`` will look at.
  /// - Parameter keys: whether ``lookup(_:hash:)`` will come, which compares keys.
  package func prefetch(_ hashes: [UInt64], keys: Bool = false) {
    for run in runs { run.prefetch(hashes, keys: keys) }
  }

  /// How many keys carry a label: the newest run that names it knows.
  func count(ofLabel id: UInt32) throws(IndexError) -> Int {
    for run in runs {
      if let label = try run.label(id) { return label.count }
    }
    return 0
  }

  /// Calls `body` with every label and the number of keys that carry it.
  func forEachLabel(_ body: (UInt32, Int) -> Void) throws(IndexError) {
    var known = IDMap()
    for run in runs {
      for number in 0..<run.labelCount {
        let label = try run.label(at: number)
        guard known[label.id] == nil else { continue }
        known.insert(label.id, 0)
        body(label.id, label.count)
      }
    }
  }

  /// Puts a run in the place of some of the newest.
  /// - Returns: those.
  mutating func replace(newest count: Int, by run: Image) -> [Image] {
    let gone = Array(runs.prefix(count))
    runs.replaceSubrange(0..<gone.count, with: [run])
    return gone
  }

  /// How many of the newest runs should be merged with a new one, so that there are few and each
  /// is much larger than those above: every key is written about once per level.
  /// - Parameters:
  ///   - keys: how many the new one has.
  ///   - least: one of fewer keys counts as one of so many.
  ///   - isBounded: whether whoever asks has little time; then what is too much is left for later.
  package func countToMerge(with keys: Int, least: Int, isBounded: Bool) -> Int {
    var size = max(keys, least)
    let most = isBounded && runs.count < Limits.runs ? size * Limits.runGrowth * 2 : Int.max
    var count = 0
    while count < runs.count, runs[count].count <= size * Limits.runGrowth {
      guard size + runs[count].count <= most else { break }
      size += runs[count].count
      count += 1
    }
    return runs.count < Limits.runs ? count : max(count, 1)
  }

  /// Whether a merge was left for later.
  package func isUneven(least: Int) -> Bool {
    zip(runs, runs.dropFirst()).contains { upper, lower in
      lower.count <= max(upper.count, least) * Limits.runGrowth
    }
  }
}
