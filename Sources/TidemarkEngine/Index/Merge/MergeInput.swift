// SAFETY: a frozen memtable's keys and slots never change again; what of it does change lazily,
// its order and its labels' candidates, is copied here while the owner's lock is held, and so are
// the tables of strings. Runs are immutable.

/// What a merge of the index reads: the frozen memtable and the newest sorted runs, of
/// which it makes one new run. The runs beneath stay as they are.
///
/// May be used on any thread, without the lock of the index that it was taken from.
package struct MergeInput: @unchecked Sendable {
  let frozen: Memtable
  let frozenOrder: SortedSlots
  let frozenLabels: MemtableLabels
  /// The runs that the new one takes the place of, newest first.
  let runs: [SortedRun]
  /// The runs beneath.
  let beneath: RunList
  let labels: StringInterner
  let sets: StringInterner
  let seed: UInt64

  init(frozen: Memtable, over runs: RunList, taking count: Int, table: LabelTable, seed: UInt64) {
    self.frozen = frozen
    frozenOrder = frozen.order
    frozenLabels = frozen.labels
    self.runs = Array(runs.runs.prefix(count))
    beneath = RunList(Array(runs.runs.dropFirst(count)))
    labels = table.labels.mergeInput(count)
    sets = table.sets.mergeInput(count)
    self.seed = seed
  }

  /// The new run has the entries behind this sequence.
  package var base: UInt64 { beneath.sequence }

  /// Whether no run stays beneath the new one: tombstones and lost labels then hide nothing.
  var isWhole: Bool { beneath.runs.isEmpty }

  /// How many keys are not deleted in the new run and all beneath.
  var totalLiveKeys: Int {
    (runs.first?.header.totalLiveKeys ?? beneath.liveKeys) + frozen.liveChange
  }

  /// How many keys the result has at most.
  var mostKeys: Int { runs.reduce(frozen.count) { $0 + $1.count } }
}

/// Layers that an index needs no more. Freeing them takes a while, so it is done once the owner's
/// lock is released, on the same thread, since they are not `Sendable`.
package struct Discarded {
  let memtables: [Memtable?]
  let runs: [SortedRun]
  let strings: [InternedStrings]
}
