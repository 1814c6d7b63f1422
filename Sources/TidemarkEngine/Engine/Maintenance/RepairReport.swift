/// The contents that a repair has brought into the new store, and what it could not.
package struct RepairReport: Sendable {
  /// Entries in the new store.
  package var entries = 0
  /// Segments that were read and that were written.
  package var segmentsRead = 0
  package var segmentsWritten = 0
  /// The last sequence of the source; the new store continues behind it.
  package var lastSequence: UInt64 = 0
  /// The losses, in the order of files and offsets.
  package var losses: [RepairLoss] = []
  /// All sequences that are lost.
  package var lost = SequenceSet()
  /// Facts that the source no longer holds and that were worked out or given up: identity, history.
  package var notes: [String] = []

  package init() {}

  /// Whether everything that the source held is in the new store.
  package var isComplete: Bool { losses.isEmpty }
}

/// A part of the source that could not be read.
package struct RepairLoss: Sendable, Hashable {
  /// Relative to the source.
  package var file: String
  package var offset: Int
  /// The entries that are gone with it, at least; nil where none are.
  package var sequences: ClosedRange<UInt64>?
  package var reason: String
  /// Keys of the lost entries, where their heads are intact: the first ones.
  package var keys: [[UInt8]] = []
  /// How many lost entries there are whose keys are known.
  package var keyCount = 0

  package init(
    file: String, offset: Int, sequences: ClosedRange<UInt64>? = nil, reason: String
  ) {
    self.file = file
    self.offset = offset
    self.sequences = sequences
    self.reason = reason
  }
}
