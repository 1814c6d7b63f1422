/// What a repair has brought into the new store, and what it could not.
public struct RepairReport: Sendable {
  /// Entries in the new store.
  public var entries = 0
  /// Segments that were read.
  public var segmentsRead = 0
  /// Segments that were written.
  public var segmentsWritten = 0
  /// The last sequence of the damaged store; the new store gives out sequences after it.
  public var lastSequence: UInt64 = 0
  /// The losses, as they were found: mostly in the order of files and offsets.
  public var losses: [RepairLoss] = []
  package var lost = SequenceSet()
  /// All sequences that are lost, in order.
  public var lostSequences: [ClosedRange<UInt64>] { lost.ranges }
  /// Facts that the damaged store no longer holds, and how the new one makes do: identity, history.
  public var notes: [String] = []

  /// Whether everything that the source held is in the new store.
  public var isComplete: Bool { losses.isEmpty }
}

/// A part of the source that could not be read.
public struct RepairLoss: Sendable, Hashable {
  /// The file, relative to the source.
  public var file: String
  /// Where in the file the loss begins, in bytes.
  public var offset: Int
  /// The sequences of the entries that are gone with it, at least; nil where none are.
  public var sequences: ClosedRange<UInt64>?
  /// The fault, in words.
  public var reason: String
  /// Keys of the lost entries, where their heads are intact: the first ones.
  public var keys: [[UInt8]] = []
  /// How many lost entries there are whose keys are known.
  public var keyCount = 0
}
