internal import TidemarkEngine

extension Store {
  /// The imports that run in this process, and the event that one of them has ended.
  private static let running = Lock<Set<RunningImport>>([])
  private static let ended = Signal()
  private struct RunningImport: Hashable {
    let store: ObjectIdentifier
    let name: String
  }

  /// Copies data into the store once: after a call has succeeded, later calls do nothing.
  ///
  /// ```swift
  /// try await store.importOnce(named: "old notes") { importer in
  ///   for old in try oldNotes() {
  ///     try await importer.write { try $0.put(Note(old), in: notes) }
  ///   }
  /// }
  /// ```
  /// The store commits batches of about 1,000 changes or 1 MiB. The last batch also holds the mark
  /// that the import is done. When the closure throws, or the process ends before the last batch,
  /// earlier batches stay. The next call then runs the closure from the beginning, and the closure
  /// overwrites edits that were made in between.
  ///
  /// The mark is on the disk when the call returns. Replication and export leave it out: every
  /// device imports its own data. Of two calls with one name the second waits for the first, so the
  /// closure must not import under its own name.
  /// - Parameters:
  ///   - name: 1 to 255 bytes; another name is another import.
  ///   - body: reads the old data and writes it, on the caller's actor.
  /// - Returns: whether the closure ran.
  /// - Throws: what `body` throws; else `TidemarkError`, as ``write(_:durability:)`` with a batch.
  @discardableResult
  nonisolated(nonsending) public func importOnce(
    named name: String,
    _ body: nonisolated(nonsending) (inout ImportWriter) async throws -> Void
  ) async throws -> Bool {
    guard 1...255 ~= name.utf8.count else {
      throw TidemarkError(.invalidArgument, "an import's name has 1 to 255 bytes")
    }
    let own = RunningImport(store: ObjectIdentifier(self), name: name)
    while true {
      let seen = Self.ended.count
      if Self.running.withLock({ $0.insert(own).inserted }) { break }
      await Self.ended.wait(beyond: seen)
      try TidemarkError.checkCancellation()
    }
    defer {
      Self.running.withLock { _ = $0.remove(own) }
      Self.ended.raise()
    }
    let mark = DerivedKeys.prefix + [UInt8(ascii: "o")] + name.utf8
    if try contains(mark) { return false }
    var writer = ImportWriter(store: self)
    try await body(&writer)
    try writer.batch.operations.addDerived(mark.rawSpan, [UInt8]().rawSpan)
    try await write(writer.batch, durability: .durable)
    return true
  }
}

/// The writer that ``Store/importOnce(named:_:)`` hands to its closure, to add the imported data.
public struct ImportWriter: Sendable {
  private static let changesPerCommit = 1_000
  private static let bytesPerCommit = 1 << 20
  fileprivate let store: Store
  fileprivate var batch = WriteBatch()

  /// Adds changes to the import. The store commits them in batches of about 1,000 changes or 1 MiB.
  /// - Parameter body: adds puts and deletes to the batch.
  /// - Throws: the errors of `body`, and those of committing a batch.
  nonisolated(nonsending) public mutating func write(
    _ body: (inout WriteBatch) throws -> Void
  ) async throws {
    try body(&batch)
    let bytes = batch.operations.arena.count
    guard batch.count >= Self.changesPerCommit || bytes >= Self.bytesPerCommit else { return }
    try await store.write(batch, durability: .buffered)
    batch.removeAll()
  }
}
