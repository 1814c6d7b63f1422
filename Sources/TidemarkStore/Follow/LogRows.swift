public import TidemarkEngine

/// Entries of the log in the order in which they were committed.
///
/// ```swift
/// var log = try store.entries(since: 100)
/// while let entry = try log.next() { print(entry.sequence, entry.kind, entry.key) }
/// ```
public struct LogRows: ~Copyable {
  private let source: ReadSource
  /// Keeps what is to come.
  private let pin: EngineView
  private var cursor: LogCursor
  private let values: Bool

  init(
    _ source: ReadSource, pin: EngineView, after: UInt64, through: UInt64, values: Bool
  ) {
    self.source = source
    self.pin = pin
    self.values = values
    // The caller may give any bound: behind the end there is nothing.
    cursor = LogCursor(source.engine.reader, from: min(after, through) + 1, through: through)
  }

  /// The next entry; nil at the end.
  public mutating func next() throws(TidemarkError) -> Entry? {
    while let entry = try cursor.next() {
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
    let oldest = try sequence == nil ? source.engine.reader.bounds().historyFrom : 0
    let pin = try source.engine.reader.view(at: min(sequence ?? oldest, end))
    return LogRows(source, pin: pin, after: sequence ?? 0, through: end, values: values)
  }
}
