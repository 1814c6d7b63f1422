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

  fileprivate func noteIdle(at version: UInt64) {
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

extension Engine {
  /// Sets what derives entries from others, once.
  package func derive(by derivation: Derivation) { _ = self.derivation.set(derivation) }

  /// Says that from now on other entries follow from what is written.
  package func noteDerivationChange() { derivation.object?.noteChange() }

  /// Another number after each change of what follows from entries.
  package var derivationVersion: UInt64 { derivation.object?.version ?? 0 }

  /// Says that nothing follows from any entry before the next change.
  /// - Parameter version: ``derivationVersion`` before that was found out.
  package func noteNothingFollows(at version: UInt64) { derivation.object?.noteIdle(at: version) }

  /// See ``Derivation/takeovers``.
  package var takeovers: UInt64 { derivation.object?.takeovers ?? 0 }

  /// The newest entry of a key that is there; 0 for none. For a ``DerivedChange``, which holds the
  /// writer's lock, so that a damaged index is an error and is not made anew.
  package func newestEntry(ofKey key: RawSpan) throws(TidemarkError) -> UInt64 {
    do {
      let slot = try reading.withLock { (read: inout ReadState) throws(IndexError) in
        try read.index.lookup(key, hash: read.index.hash(key))
      }
      return slot.flatMap { $0.isDeleted ? nil : $0.sequence } ?? 0
    } catch { throw describe(error) }
  }

  /// The first keys with a prefix, or the last; for a ``DerivedChange`` as well.
  package func firstKeys(
    withPrefix prefix: [UInt8], limit: Int, fromEnd: Bool = false
  ) throws(TidemarkError) -> [[UInt8]] {
    var page = KeyPage(room: min(limit, 64))
    var keys: [[UInt8]] = []
    let bounds = (KeyBound.including(prefix), KeyBound.afterPrefix(prefix))
    var from = fromEnd ? bounds.1 : bounds.0
    do {
      while keys.count < limit {
        let isAtEnd = try reading.withLock { (read: inout ReadState) throws(IndexError) in
          try read.index.page(
            from: from, upTo: fromEnd ? bounds.0 : bounds.1, descending: fromEnd,
            limit: min(1_024, limit - keys.count), into: &page)
        }
        for number in 0..<page.count { keys.append([UInt8](copying: page.key(at: number))) }
        if isAtEnd { break }
        from = page.resumption
      }
    } catch { throw describe(error) }
    return keys
  }
  /// How many keys begin with a prefix, and about how many bytes their entries have before they are
  /// compressed.
  package func extent(ofPrefix prefix: [UInt8]) throws(TidemarkError) -> (keys: Int, bytes: Int) {
    var page = KeyPage(room: 64)
    var (keys, bytes) = (0, 0)
    var from = KeyBound.including(prefix)
    do {
      while true {
        let isAtEnd = try reading.withLock { (read: inout ReadState) throws(IndexError) in
          try read.index.page(
            from: from, upTo: .afterPrefix(prefix), descending: false, limit: 1_024, into: &page)
        }
        keys += page.count
        for number in 0..<page.count { bytes += page.slot(at: number).size.approximateBytes }
        if isAtEnd { return (keys, bytes) }
        from = page.resumption
      }
    } catch { throw describe(error) }
  }
}
