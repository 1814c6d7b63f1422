/// An event in a store, for logs, metrics and signposts. Set `Store.Configuration.onEvent` to
/// receive events.
///
/// ```swift
/// configuration.onEvent = { event in
///   print(event)  // compacted notes.tidemark: 1200 entries, 480 kB, 0.2 s
/// }
/// ```
public struct StoreEvent: Sendable, CustomStringConvertible {
  /// The kind of an event, such as `opened` or `compacted`. Later versions add kinds, so a `switch`
  /// needs a `default`.
  public struct Kind: Sendable, Hashable, CustomStringConvertible {
    /// The name of the kind, such as `compacted`.
    public let description: String

    /// The store was opened. `duration` is the time that opening took, `entries` the sequence of
    /// the last entry, and `bytes` the length of the log.
    public static let opened = Kind(description: "opened")
    /// The store was not closed cleanly before, so opening recovered its log. `entries` is the
    /// number of entries read from the unsealed end of the log; `bytes` is the length of that end.
    public static let recovered = Kind(description: "recovered")
    /// The store sealed a segment of the log. `bytes` is the segment's length; `entries` is the
    /// number of sequences that the segment covers.
    public static let sealed = Kind(description: "sealed")
    /// The store wrote an index checkpoint. `bytes` is the length of the checkpoint's file.
    public static let checkpointed = Kind(description: "checkpointed")
    /// A compaction ended. `entries` is the number of dropped entries; `bytes` is the number of
    /// freed bytes.
    public static let compacted = Kind(description: "compacted")
    /// A write had to wait because too much of the log was not synced yet. `duration` is the time
    /// that the write waited.
    public static let stalled = Kind(description: "stalled")
    /// A cache removed entries. `entries` is the number of removed entries; `bytes` is the number
    /// of their bytes.
    public static let evicted = Kind(description: "evicted")
    /// A replicator ended a round of calls to its peer. `entries` is the number of entries sent and
    /// received; `bytes` counts the attachments; `subject` is the replicator's name.
    public static let synced = Kind(description: "synced")
    /// A peer refused entries for good. `entries` is their number; `subject` is the replicator's
    /// name.
    public static let refused = Kind(description: "refused")
    /// Background work or a call of a replicator failed. `error` is the reason; `subject` names the
    /// work.
    public static let failed = Kind(description: "failed")
  }

  /// The kind of the event; it decides the meaning of ``entries``, ``bytes`` and ``duration``.
  public let kind: Kind
  /// The directory of the store that the event is about.
  public let store: String
  /// The name of the replicator or of the background work; empty for the store itself.
  public let subject: String
  /// The time that the work took; zero for events without a duration.
  public let duration: Duration
  /// The number of entries; the event's kind says of which.
  public let entries: Int
  /// The number of bytes; the event's kind says of which.
  public let bytes: Int
  /// The error of the failed work; nil unless the kind is ``Kind/failed``.
  public let error: (any Error)?

  /// The event as one line of text, for a log.
  public var description: String {
    let name = subject.isEmpty ? store : "\(store), \(subject)"
    return "\(kind) \(name): "
      + (error.map { "\($0)" } ?? "\(entries) entries, \(bytes) bytes, \(duration)")
  }
}

extension StoreContext {
  /// The monotonic time, to measure an event from; 0 when nobody listens.
  package func eventStart() -> UInt64 {
    configuration.onEvent == nil ? 0 : environment.clock.monotonicNanoseconds()
  }

  /// Tells the program of an event. Locks may be held: the program must not call the store.
  /// - Parameter start: the result of `eventStart()`; nil for an event without a duration.
  package func tell(
    _ kind: StoreEvent.Kind, from start: UInt64? = nil, entries: Int = 0, bytes: Int = 0,
    subject: String = "", error: (any Error)? = nil
  ) {
    guard let onEvent = configuration.onEvent else { return }
    let nanoseconds = start.map { environment.clock.monotonicNanoseconds() &- $0 } ?? 0
    onEvent(
      StoreEvent(
        kind: kind, store: path, subject: subject,
        duration: .nanoseconds(Int64(clamping: nanoseconds)), entries: entries, bytes: bytes,
        error: error))
  }
}
