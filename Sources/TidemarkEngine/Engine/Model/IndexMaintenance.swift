/// Computes derived entries: entries of the engine's own, such as rows of secondary indexes, that
/// follow from the entries of a batch and are committed with them. The counters tell the writer,
/// which prepares without a lock, whether what it prepared still holds under its lock.
package final class IndexMaintenance: Sendable {
  /// Whether derived entries follow from an entry of a key.
  let concerns: @Sendable (RawSpan) -> Bool
  /// Works out what follows from a batch; nil for nothing. Called without the writer's lock, so it
  /// may read the store; ``IndexUpdate/add(to:)`` tells whether others have written since.
  let prepare: @Sendable (OperationBatch) throws(TidemarkError) -> (any IndexUpdate)?

  private let generation = AtomicCounter()
  private let takenOver = AtomicCounter()
  /// The `version` at which there was no index, so that nothing follows from any entry.
  private let idleVersion = AtomicCounter(.max)

  /// Whether nothing follows from any entry at a version, as far as that was found out.
  func isIdle(at version: UInt64) -> Bool { idleVersion.value == version }

  /// Indexes have changed: the writer prepares again what was prepared at another `version`.
  package func noteChange() { generation.raise() }

  /// Another process has had the store: sequences that callers remember may name other entries.
  func noteTakeover() {
    takenOver.raise()
    noteChange()
  }

  /// Says that nothing follows from any entry until the next change, so that puts need not ask.
  /// - Parameter version: the one before it was found out that there are no indexes.
  package func noteIdle(at version: UInt64) { idleVersion.set(version) }

  /// How often another process has had the store.
  package var takeovers: UInt64 { takenOver.value }

  /// Counts the changes of indexes.
  package var version: UInt64 { generation.value }

  package init(
    concerns: @escaping @Sendable (RawSpan) -> Bool,
    prepare: @escaping @Sendable (OperationBatch) throws(TidemarkError) -> (any IndexUpdate)?
  ) {
    self.concerns = concerns
    self.prepare = prepare
  }
}

/// The derived operations that follow from one batch.
package protocol IndexUpdate: Sendable {
  /// Adds the derived operations. The caller holds the writer's lock.
  /// - Returns: false when what it was prepared from was written since: then prepare it again.
  func add(to batch: inout OperationBatch) throws(TidemarkError) -> Bool
}

/// A row of a secondary index, without the id of the object that it leads to.
package struct DerivedRow: Sendable, Hashable {
  /// The number of the index.
  package var index: UInt32
  /// The indexed values, encoded so that byte order is the order of the index.
  package var term: [UInt8]
  /// The row's value. Rows with equal terms have equal values, so `==` compares terms only.
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

/// The rows of an operation, where its caller has computed them already.
package struct KnownRows: Sendable, Hashable {
  /// The version of the indexes that the rows were computed for; for others they do not count.
  package var schema: Int
  package var rows: [DerivedRow]

  package init(schema: Int, rows: [DerivedRow]) {
    self.schema = schema
    self.rows = rows
  }
}
