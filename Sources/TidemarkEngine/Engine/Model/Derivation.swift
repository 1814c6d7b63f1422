/// The source of entries that follow from others, and are committed with them: the rows of indexes.
package final class Derivation: Sendable {
  /// Whether something follows from an entry of a key.
  let concerns: @Sendable (RawSpan) -> Bool
  /// Reads what is needed to say what follows from a batch; nil for nothing. Nobody is locked out
  /// meanwhile.
  let prepare: @Sendable (OperationBatch) throws(TidemarkError) -> (any DerivedChange)?

  private let generation = AtomicCounter()
  private let takenOver = AtomicCounter()
  /// The version at which nothing followed from any entry; none at first.
  private let idleVersion = AtomicCounter(.max)

  /// Whether it is known that nothing follows from any entry at a version, so that a store without
  /// indexes asks nobody for each put.
  func isIdle(at version: UInt64) -> Bool { idleVersion.value == version }

  /// Says that from now on other entries follow: what was prepared before is prepared anew.
  package func noteChange() { generation.raise() }

  /// Says that another process has had the store: what is known of it may not hold any more.
  func noteTakeover() {
    takenOver.raise()
    noteChange()
  }

  func noteIdle(at version: UInt64) {
    idleVersion.set(version)
  }

  /// How often another process has had the store.
  package var takeovers: UInt64 { takenOver.value }

  /// Another number after each change.
  var version: UInt64 { generation.value }

  package init(
    concerns: @escaping @Sendable (RawSpan) -> Bool,
    prepare: @escaping @Sendable (OperationBatch) throws(TidemarkError) -> (any DerivedChange)?
  ) {
    self.concerns = concerns
    self.prepare = prepare
  }
}

/// The change that follows from a batch.
package protocol DerivedChange: Sendable {
  /// Adds the operations that follow. Nobody else writes meanwhile.
  /// - Returns: false when somebody has written since what this change was prepared from: then it
  ///   has to be prepared anew.
  func add(to batch: inout OperationBatch) throws(TidemarkError) -> Bool
}

/// A row of an index, without the id that it leads to.
package struct DerivedRow: Sendable, Hashable {
  /// The number of the index.
  package var index: UInt32
  /// The indexed values, such that their bytes are in the order of the index.
  package var term: [UInt8]
  /// The row's value, which its term stands for: two rows with the same term have the same.
  package var value: [UInt8]

  package init(index: UInt32, term: [UInt8], value: [UInt8] = []) {
    self.index = index
    self.term = term
    self.value = value
  }

  package static func == (a: DerivedRow, b: DerivedRow) -> Bool {
    a.index == b.index && a.term == b.term
  }

  package func hash(into hasher: inout Hasher) {
    hasher.combine(index)
    hasher.combine(term)
  }
}

/// Rows of an operation that its caller knows.
package struct KnownRows: Sendable, Hashable {
  /// The indexes that the rows are for, by a number that changes with them.
  package var schema: Int
  package var rows: [DerivedRow]

  package init(schema: Int, rows: [DerivedRow]) {
    self.schema = schema
    self.rows = rows
  }
}
