public import TidemarkEngine

/// Entries of the log in the order in which they were committed.
///
/// ```swift
/// var log = try store.entries(since: 100)
/// while let entry = try log.next() { print(entry.sequence, entry.kind, entry.key) }
/// ```
public struct LogRows: ~Copyable {
  private let source: ReadSource
  /// A view that is older than all entries to come: while it is open, compaction keeps them.
  private let pin: EngineView
  private var cursor: LogCursor
  private let values: Bool

  init(_ source: ReadSource, pin: EngineView, after: UInt64, through: UInt64, values: Bool) {
    (self.source, self.pin, self.values) = (source, pin, values)
    // `after` may be any number: behind the end no entry follows, and `+ 1` must not overflow.
    cursor = LogCursor(source.engine.reader, from: min(after, through) + 1, through: through)
  }

  /// Reads the next entry of the log; nil at the end.
  /// - Throws: `damaged`, `inputOutput`.
  public mutating func next() throws(TidemarkError) -> Entry? {
    while let entry = try cursor.next() {
      // The cursor ends at the view's sequence; a view by own time also leaves out entries with
      // later times of their own. Without a view every entry counts.
      guard try source.view?.shows(entry) ?? true else { continue }
      return try source.entry(entry, values: values)
    }
    return nil
  }
}

extension StoreReader {
  /// The entries that came after a sequence, in order.
  /// - Parameters:
  ///   - sequence: the last one not wanted; nil for everything that is still kept, however
  ///     much of the history is gone.
  ///   - values: whether values are read too.
  /// - Throws: `historyGone` when not all of them are kept.
  public func entries(
    since sequence: UInt64?, values: Bool = true
  ) throws(TidemarkError) -> LogRows {
    let source = source
    let end = try source.pinned().sequence
    // Behind `end` there is no entry to keep. Some entries below the oldest state that can be shown
    // are still kept: the cursor begins at 1 all the same.
    let pin = try source.engine.reader.view(at: min(sequence ?? 0, end), orOldest: sequence == nil)
    return LogRows(source, pin: pin, after: sequence ?? 0, through: end, values: values)
  }
}
