// SAFETY: a frozen delta's keys and slots never change again; what of it does change lazily,
// its order and its labels' candidates, is copied here while the owner's lock is held, and so are
// the tables of strings. Runs are immutable.

/// The frozen delta and the newest runs beneath, as a merge wants them.
///
/// May be used on any thread, without the lock of the index that it was taken from.
package struct MergeInput: @unchecked Sendable {
  let frozen: Delta
  let frozenOrder: SortedSlots
  let frozenLabels: DeltaLabels
  /// The runs that the new one takes the place of, newest first.
  let runs: [Image]
  /// The runs beneath.
  let beneath: RunList
  let labels: StringInterner
  let sets: StringInterner
  let seed: UInt64

  init(
    frozen: Delta, over runs: RunList, taking count: Int, table: LabelTable, seed: UInt64
  ) {
    self.frozen = frozen
    frozenOrder = frozen.order
    frozenLabels = frozen.labels
    self.runs = Array(runs.runs.prefix(count))
    beneath = RunList(Array(runs.runs.dropFirst(count)))
    labels = table.labels.mergeInput(count)
    sets = table.sets.mergeInput(count)
    self.seed = seed
  }

  /// The sequence behind which the new run begins.
  package var base: UInt64 { beneath.sequence }

  /// Whether the new run has all keys, so that it need not remember what it overrides.
  var isWhole: Bool { beneath.runs.isEmpty }

  /// How many keys the index has that are not deleted.
  var totalLiveKeys: Int {
    (runs.first?.header.totalLiveKeys ?? beneath.liveKeys) + frozen.liveChange
  }

  /// How many keys the result has at most.
  var mostKeys: Int { runs.reduce(frozen.count) { $0 + $1.count } }
}

/// Layers that an index needs no more. They are not `Sendable`: who takes them out of the lock
/// frees them on the same thread.
package struct Discarded {
  let deltas: [Delta?]
  let runs: [Image]
  let strings: [InternedStrings]
}
