public import TidemarkEngine

/// The store as it was after one sequence.
///
/// What it needs is kept from compaction as long as it lives.
///
/// ```swift
/// let before = try store.view()
/// try await store.delete("note/1")
/// try before.value(forKey: "note/1")   // still there
/// ```
public struct StoreView: StoreReader {
  /// Where reads go; of no use outside the library.
  public let source: ReadSource
  /// The last sequence that the view shows.
  public let sequence: UInt64
}

extension Store {
  /// The state after a sequence.
  /// - Parameter sequence: nil for the newest; 0 for the empty store at the beginning.
  /// - Throws: `historyGone` when that is no longer kept, `invalidArgument` when it was not
  ///   reached yet.
  public func view(at sequence: UInt64? = nil) throws(TidemarkError) -> StoreView {
    let view = try engine.view(at: sequence)
    return StoreView(source: ReadSource(store: self, view: view), sequence: view.sequence)
  }

  /// The state at a date: after the last sequence up to which no entry has a later time of its
  /// own (where it has none, of its commit).
  /// - Throws: `historyGone` when that is no longer kept.
  public func view(at date: Timestamp) throws(TidemarkError) -> StoreView {
    try view(at: engine.sequence(at: date))
  }
}
