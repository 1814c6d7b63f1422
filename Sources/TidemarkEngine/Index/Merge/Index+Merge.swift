// A memtable becomes a sorted run: freeze, write the run from `mergeInput` without a
// lock, publish. All calls here are under the lock of the index's owner.
extension Index {
  /// How many keys were written since the newest run.
  package var memtableKeys: Int { (frozen?.count ?? 0) + active.count }

  /// How many keys the frozen memtable has, which the next run takes up.
  package var frozenKeys: Int { frozen?.count ?? 0 }

  /// Freezes the active memtable and begins a new one. No memtable may be frozen.
  package func freeze() {
    precondition(frozen == nil, "a frozen memtable must be merged first")
    // The merge takes a copy of the label lists and expects all candidates in them.
    active.labels.distributeWaiting()
    frozen = active
    active = Memtable()
    labelTable.freeze()
  }

  /// The input of the next run: the frozen memtable, of which there must be one, and some of the
  /// newest runs. May be used on another thread without the owner's lock.
  /// - Parameter count: how many of the newest runs the new one takes the place of.
  package func mergeInput(taking count: Int) -> MergeInput {
    guard let frozen else { preconditionFailure("freeze before a merge") }
    return MergeInput(
      frozen: frozen, over: runs, taking: min(count, runs.runs.count), table: labelTable,
      seed: seed)
  }

  /// Takes a run written from ``mergeInput(taking:)`` into use, in the place of the frozen memtable
  /// and the `count` runs that were merged. Not for an index made anew in between.
  /// - Returns: what is to be freed outside of locks, since that takes a while.
  /// - Throws: nothing has changed then.
  package func publish(_ run: SortedRun, taking count: Int) throws(IndexError) -> Discarded {
    guard run.header.seed == seed, count <= runs.runs.count else {
      throw IndexError.runInvalid(FormatError("run of another index"))
    }
    let gone = runs.replace(newest: count, by: run)
    let strings = labelTable.publish(runs.runs)
    defer { frozen = nil }
    return Discarded(memtables: [frozen], runs: gone, strings: strings)
  }

  /// Forgets everything and lets go of all runs, whose files close when the result is freed.
  /// - Returns: what is to be freed outside of locks.
  package func removeAll() -> Discarded {
    let gone = Discarded(memtables: [active, frozen], runs: runs.runs, strings: [])
    labelTable.freeze()
    _ = labelTable.publish([])
    runs = RunList()
    frozen = nil
    active = Memtable()
    return gone
  }

  /// The labels that live keys carry, in byte order, each with the number of these keys.
  package func labelCounts() throws(IndexError) -> [(label: [UInt8], count: Int)] {
    var found: [(id: UInt32, count: Int)] = []
    var changes: [UInt32: Int] = [:]
    for memtable in [frozen, active] {
      for id in memtable?.labels.ids ?? [] {
        changes[id, default: 0] += memtable?.labels.change(of: id) ?? 0
      }
    }
    try runs.forEachLabel { (id, count) in
      found.append((id, count + (changes.removeValue(forKey: id) ?? 0)))
    }
    for (id, change) in changes { found.append((id, change)) }
    var counts: [(label: [UInt8], count: Int)] = []
    for (id, count) in found where count > 0 {
      counts.append((try labelTable.labels.string(id), count))
    }
    counts.sort { $0.label.rawSpan.compare(to: $1.label.rawSpan) < 0 }
    return counts
  }

  /// How many keys carry a label.
  package func count(ofLabel label: RawSpan) throws(IndexError) -> Int {
    // No key carries a label that no layer names.
    guard let id = try labelTable.labels.find(label) else { return 0 }
    return active.labels.change(of: id) + (frozen?.labels.change(of: id) ?? 0)
      + (try runs.count(ofLabel: id))
  }
}
