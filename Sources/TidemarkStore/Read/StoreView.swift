public import TidemarkEngine

/// The store as it was after one sequence, or on a date.
///
/// Compaction keeps everything that a view needs as long as the view lives.
///
/// ```swift
/// let before = try store.view()
/// try await store.delete("note/1")
/// try before.value(forKey: "note/1")   // still there
/// ```
public struct StoreView: StoreReader {
  /// Where reads go; of no use outside the library.
  public let source: ReadSource
  /// The last sequence that the view knows of.
  public let sequence: UInt64

  /// Calls `body` with a key's value; of no use outside the library.
  public func read(
    _ key: RawSpan, _ body: (RawSpan) throws(TidemarkError) -> Void
  ) throws(TidemarkError) -> Bool {
    guard let view = source.view, let entry = try view.entry(forKey: key)
    else { return false }
    try source.engine.reader.read(of: entry.sequence, isTouch: entry.head.kind == .touch) {
      (value, _) throws(TidemarkError) in try body(value)
    }
    return true
  }
}

extension Store {
  /// The state after a sequence.
  /// - Parameter sequence: nil for the newest; 0 for the empty store at the beginning.
  /// - Throws: `historyGone` when that is no longer kept, `invalidArgument` when it was not
  ///   reached yet.
  public func view(at sequence: UInt64? = nil) throws(TidemarkError) -> StoreView {
    let view = try engine.reader.view(at: sequence)
    return StoreView(source: ReadSource(store: self, view: view), sequence: view.sequence)
  }

  /// By which of an entry's two times a view goes.
  public enum DateKind: Sendable, Hashable {
    /// When it was committed here, by this store's clock, which never goes back.
    case commitTime
    /// ``PutOptions/time``, whatever the writer says; where none was given, the commit time.
    case ownTime
  }

  /// The state at a date.
  ///
  /// By commit time it is what a reader saw then: whatever was committed later is left out, an
  /// entry that came from a peer also when it is older there. By own time it is what the entries up
  /// to that date make, in the order in which they were committed: one with a later time is left
  /// out, and one that was added afterwards for an earlier day is in it. Each key that is looked at
  /// costs a look at the log then.
  /// - Parameters:
  ///   - date: entries of this time are in the state, later ones are not.
  ///   - kind: by which time.
  /// - Throws: `historyGone` when that is no longer kept; by own time, when an entry of a later
  ///   time stands in history that was compacted, so that nobody knows what it has replaced.
  public func view(
    at date: Timestamp, by kind: DateKind = .commitTime
  ) throws(TidemarkError) -> StoreView {
    switch kind {
    case .commitTime: return try view(at: sequence(at: date))
    case .ownTime:
      let view = try engine.reader.history.view(ofOwnTimesThrough: date)
      return StoreView(source: ReadSource(store: self, view: view), sequence: view.sequence)
    }
  }

  /// The last sequence that was committed by a date, by this store's clock; 0 when nothing was.
  ///
  /// ```swift
  /// var log = try store.entries(since: try store.sequence(at: yesterday))
  /// ```
  /// - Throws: `historyGone` when what stood at that date is no longer kept.
  public func sequence(at date: Timestamp) throws(TidemarkError) -> UInt64 {
    try engine.reader.history.sequence(at: date)
  }
}
