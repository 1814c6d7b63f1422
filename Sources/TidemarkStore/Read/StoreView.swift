public import TidemarkEngine

/// The store as it was after one sequence, or on a date: a snapshot to read from.
///
/// Compaction keeps everything that a view shows as long as the view or a copy of it exists.
///
/// ```swift
/// let before = try store.view()
/// try await store.delete("note/1")
/// try before.value(forKey: "note/1")   // still there
/// ```
public struct StoreView: StoreReader {
  /// The store and the state that this view shows; used by the library's own extensions.
  public let source: ReadSource
  /// The sequence that the view is opened at: it shows no entry with a higher one.
  public let sequence: UInt64

  /// Calls `body` with a key's value; for the library alone.
  public func read(
    _ key: RawSpan, _ body: (RawSpan) throws(TidemarkError) -> Void
  ) throws(TidemarkError) -> Bool {
    // All views are made below, with `source.view` set.
    guard let view = source.view, let entry = try view.entry(forKey: key)
    else { return false }
    try source.engine.reader.read(of: entry.sequence, isTouch: entry.head.kind == .touch) {
      (value, _) throws(TidemarkError) in try body(value)
    }
    return true
  }
}

extension Store {
  /// Opens a view of the store as it was after a sequence.
  /// - Parameter sequence: nil for the newest; 0 for the empty store at the beginning.
  /// - Throws: `historyGone` when that is no longer kept, `invalidArgument` when it was not
  ///   reached yet.
  public func view(at sequence: UInt64? = nil) throws(TidemarkError) -> StoreView {
    let view = try engine.reader.view(at: sequence)
    return StoreView(source: ReadSource(store: self, view: view), sequence: view.sequence)
  }

  /// The time by which a view at a date decides whether it shows an entry.
  public enum DateKind: Sendable, Hashable {
    /// The time at which this store committed the entry, by a clock that never goes back.
    case commitTime
    /// The time that the writer gave the entry in ``PutOptions/time``; the commit time where there
    /// is none.
    case ownTime
  }

  /// The state at a date.
  ///
  /// By commit time it is what a reader saw then: an entry that came from a peer counts from when
  /// it was committed here. By own time each key has its newest version among those whose own times
  /// are not after the date, whenever they were committed; reading a key then reads the log.
  /// - Parameters:
  ///   - date: entries of this time are in the state, later ones are not.
  ///   - kind: by which time.
  /// - Throws: `historyGone` when that is no longer kept; by own time also when compacted history
  ///   has an entry of a later time, since the version that it replaced may have been dropped.
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

  /// The last sequence that was committed up to a date by this store's clock; 0 for none.
  ///
  /// ```swift
  /// var log = try store.entries(since: try store.sequence(at: yesterday))
  /// ```
  /// - Throws: `historyGone` when the state of that date is no longer kept.
  public func sequence(at date: Timestamp) throws(TidemarkError) -> UInt64 {
    try engine.reader.history.sequence(at: date)
  }
}
