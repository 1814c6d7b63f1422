/// The result of a repair: what the new store holds, and what is lost.
public struct RepairReport: Sendable {
  /// The number of entries in the new store.
  public var entries = 0
  /// The number of log segments that were read from the damaged store.
  public var segmentsRead = 0
  /// The number of log segments that were written to the new store.
  public var segmentsWritten = 0
  /// The last sequence of the damaged store; the new store gives out sequences after it.
  public var lastSequence: UInt64 = 0
  /// The parts of the damaged store that could not be read, mostly in the order of files and
  /// offsets.
  public var losses: [RepairLoss] = []
  package var lost = SequenceSet()
  /// The sequences of all lost entries, in ascending order.
  public var lostSequences: [ClosedRange<UInt64>] { lost.ranges }
  /// Facts that the damaged store no longer holds, such as its identity, and the new store's
  /// substitute for them.
  public var notes: [String] = []

  /// Whether nothing is lost: everything that the damaged store held is in the new one.
  public var isComplete: Bool { losses.isEmpty }
}

/// A part of the damaged store that the repair could not read.
public struct RepairLoss: Sendable, Hashable {
  /// The damaged file, relative to the damaged store's directory.
  public var file: String
  /// The offset in ``file``, in bytes, at which the unreadable part begins.
  public var offset: Int
  /// The sequences of the entries that are lost with this part, at least; nil when no entry is.
  public var sequences: ClosedRange<UInt64>?
  /// A description of the fault, for people.
  public var reason: String
  /// The first keys of the lost entries, where their headers are intact.
  public var keys: [[UInt8]] = []
  /// The number of lost entries whose keys are known; ``keys`` lists the first of them.
  public var keyCount = 0
}
