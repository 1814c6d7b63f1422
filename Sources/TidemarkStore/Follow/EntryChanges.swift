public import TidemarkEngine

/// Settings of a change feed: the keys to follow, and when the feed delivers their entries.
public struct ChangeOptions: Sendable, Hashable {
  /// Only entries whose keys begin with this prefix are delivered; the empty key delivers all.
  public var prefix: Key
  /// The moment at which a change feed delivers an entry.
  public enum Delivery: Sendable, Hashable {
    /// As soon as it is committed: for followers that show the store's state, such as a screen. A
    /// power cut can take such entries back; then the cursor is refused with `historyDiverged`.
    case committed
    /// Once it is on the disk, which is up to a second later unless it was written as `durable`:
    /// for followers that store results of their own, which must not be ahead of the store.
    case durable
  }

  /// Whether an entry is delivered once it is on the disk (`durable`, the default) or as soon as it
  /// is committed.
  public var delivery: Delivery
  /// Whether the delivered entries hold their values. With false the feed reads no values.
  public var values: Bool

  /// Creates the settings of a change feed.
  /// - Parameters:
  ///   - prefix: only keys that begin with this are delivered; the default delivers all.
  ///   - delivery: when an entry is delivered; by default once it is on the disk.
  ///   - values: whether the entries hold their values; true by default.
  public init(
    prefix: some BytesConvertible = "", delivery: Delivery = .durable, values: Bool = true
  ) {
    self.prefix = Key(prefix)
    self.delivery = delivery
    self.values = values
  }
}

/// The changes of a store as they are committed; made by
/// ``Store/changes(since:prefix:delivery:)``.
public struct EntryChanges: AsyncSequence, Sendable {
  /// Each element is one change: a committed entry or a reset.
  public typealias Element = EntryChange
  /// The feed throws `TidemarkError`, such as `historyDiverged` and `damaged`.
  public typealias Failure = TidemarkError

  let store: Store
  /// The changes behind this cursor are delivered.
  let start: EntryCursor
  let options: ChangeOptions

  /// Starts a new follower of the store at the cursor that the feed was made with.
  public func makeAsyncIterator() -> Iterator { Iterator(self) }

  /// One follower of a store. It reads the log at its own pace, and nothing is buffered for it.
  public struct Iterator: AsyncIteratorProtocol {
    private let changes: EntryChanges
    /// Made before the first read; a commit between a read and the sleep after it ends the sleep.
    private let watch: SequenceWatch
    private var reader: ChangeReader?
    private var isOver = false

    init(_ changes: EntryChanges) {
      self.changes = changes
      watch = SequenceWatch(changes.store.engine)
    }

    /// The next change, once there is one; nil when the store was closed or the task cancelled.
    /// - Throws: `historyDiverged` when the cursor that this began with is not of this store's
    ///   history; `damaged` when an entry cannot be read.
    public mutating func next(
      isolation actor: isolated (any Actor)? = #isolation
    ) async throws(TidemarkError) -> EntryChange? {
      do throws(TidemarkError) {
        while !isOver, !Task.isCancelled {
          do throws(TidemarkError) {
            if let change = try step() { return change }
          } catch {
            // Sleep while the store is suspended: resuming and closing both wake the watch.
            guard error.code == .suspended else { throw error }
          }
          try await watch.wakeup.sleep(reading: changes.store)
        }
      } catch {
        isOver = true
        if error.code == .closed { return nil }
        throw error
      }
      isOver = true
      return nil
    }

    /// The next change, once there is one; nil when the store was closed or the task cancelled.
    public mutating func next() async throws(TidemarkError) -> EntryChange? {
      try await next(isolation: nil)
    }

    /// The next change; nil when there is none yet.
    private mutating func step() throws(TidemarkError) -> EntryChange? {
      if reader == nil {
        try changes.store.engine.reader.bounds().check(changes.start)
        reader = ChangeReader(
          changes.store.source, after: changes.start.sequence, options: changes.options)
      }
      return try reader?.next()
    }
  }
}

extension Signal {
  /// How often a store that is open read-only looks for what another process wrote.
  private static var pollInterval: Duration { .milliseconds(500) }

  /// Sleeps until a store may have news, or the task is cancelled.
  func sleep(reading store: Store) async throws(TidemarkError) {
    guard store.engine.configuration.access == .readOnly else { return await sleep() }
    // `sleep` throws only when the task is cancelled, which the caller checks itself.
    try? await Task.sleep(for: Self.pollInterval)
    do throws(TidemarkError) { try await store.refresh() } catch {
      guard error.code == .suspended else { throw error }
    }
  }
}

extension Store {
  /// The changes behind a cursor, then those to come, in the order of their commit.
  ///
  /// ```swift
  /// for try await change in store.changes(since: cursor, prefix: "note/") {
  ///   if let entry = change.entry { show(entry) }
  ///   cursor = change.cursor
  /// }
  /// ```
  /// Entries are delivered once they are on the disk, below `durable` up to a second after their
  /// commit; ``ChangeOptions/Delivery/committed`` delivers them at once. Of a key that was written
  /// several times, compaction may have left only the last change. When it has dropped deletes
  /// behind the cursor, an ``EntryChange/reset(at:)`` comes first, and then the whole state.
  /// The sequence ends when the store is closed or the task is cancelled. It pulls entries from the
  /// log and buffers nothing; a follower that stops in the middle keeps from compaction what it
  /// has yet to read.
  /// - Parameters:
  ///   - cursor: the last change that was dealt with; nil for what is committed from now on,
  ///     ``EntryCursor/beginning`` for everything.
  ///   - prefix: only keys that begin with this.
  ///   - delivery: when an entry is delivered.
  public func changes(
    since cursor: EntryCursor? = nil, prefix: some BytesConvertible = "",
    delivery: ChangeOptions.Delivery = .durable
  ) -> EntryChanges {
    changes(since: cursor, options: ChangeOptions(prefix: prefix, delivery: delivery))
  }

  /// The changes behind a cursor, then those to come.
  /// - Parameters:
  ///   - cursor: the last change that was dealt with; nil for what is committed from now on.
  ///   - options: what to hear of.
  public func changes(since cursor: EntryCursor?, options: ChangeOptions) -> EntryChanges {
    // `lastBounds.cursor` is behind all that is committed, also what is yet to reach the disk.
    EntryChanges(store: self, start: cursor ?? engine.reader.lastBounds.cursor, options: options)
  }
}
