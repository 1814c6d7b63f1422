public import TidemarkEngine

/// The changes that a follower wants to hear of.
public struct ChangeOptions: Sendable, Hashable {
  /// Only keys that begin with this are delivered.
  public var prefix: Key
  /// When an entry is delivered.
  public enum Delivery: Sendable, Hashable {
    /// As soon as it is committed: for followers that show the store's state, such as a screen. A
    /// power cut can take such entries back; then the cursor is refused with `historyDiverged`.
    case committed
    /// Once it is on the disk, which is up to a second later unless it was written as `durable`:
    /// for followers that store results of their own, which must not be ahead of the store.
    case durable
  }

  /// When an entry is delivered.
  public var delivery: Delivery
  /// Whether values are read too.
  public var values: Bool

  /// The changes that a follower wants to hear of.
  /// - Parameters:
  ///   - prefix: only keys that begin with this.
  ///   - delivery: when an entry is delivered.
  ///   - values: whether values are read too.
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
public struct Changes: AsyncSequence, Sendable {
  /// The element that is delivered.
  public typealias Element = Change
  /// The errors of following, such as `historyDiverged` and `damaged`.
  public typealias Failure = TidemarkError

  let store: Store
  /// The changes behind this cursor are delivered.
  let start: Cursor
  let options: ChangeOptions

  /// Begins to follow.
  public func makeAsyncIterator() -> Iterator { Iterator(self) }

  /// One follower. It reads the log at its own pace: nothing is buffered for it.
  public struct Iterator: AsyncIteratorProtocol {
    private let changes: Changes
    /// Made before the first read; a commit between a read and the sleep after it ends the sleep.
    private let watch: SequenceWatch
    private var reader: ChangeReader?
    private var isOver = false

    init(_ changes: Changes) {
      self.changes = changes
      watch = SequenceWatch(changes.store.engine)
    }

    /// The next change, once there is one; nil when the store was closed or the task cancelled.
    /// - Throws: `historyDiverged` when the cursor that this began with is not of this store's
    ///   history; `damaged` when an entry cannot be read.
    public mutating func next(
      isolation actor: isolated (any Actor)? = #isolation
    ) async throws(TidemarkError) -> Change? {
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
    public mutating func next() async throws(TidemarkError) -> Change? {
      try await next(isolation: nil)
    }

    /// The next change; nil when there is none yet.
    private mutating func step() throws(TidemarkError) -> Change? {
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
  /// behind the cursor, a ``Change/reset(at:)`` comes first, and then the whole state.
  /// The sequence ends when the store is closed or the task is cancelled. It pulls entries from the
  /// log and buffers nothing; a follower that stops in the middle keeps from compaction what it
  /// has yet to read.
  /// - Parameters:
  ///   - cursor: the last change that was dealt with; nil for what is committed from now on,
  ///     ``Cursor/beginning`` for everything.
  ///   - prefix: only keys that begin with this.
  ///   - delivery: when an entry is delivered.
  public func changes(
    since cursor: Cursor? = nil, prefix: some BytesConvertible = "",
    delivery: ChangeOptions.Delivery = .durable
  ) -> Changes {
    changes(since: cursor, options: ChangeOptions(prefix: prefix, delivery: delivery))
  }

  /// The changes behind a cursor, then those to come.
  /// - Parameters:
  ///   - cursor: the last change that was dealt with; nil for what is committed from now on.
  ///   - options: what to hear of.
  public func changes(since cursor: Cursor?, options: ChangeOptions) -> Changes {
    // `lastBounds.cursor` is behind all that is committed, also what is yet to reach the disk.
    Changes(store: self, start: cursor ?? engine.reader.lastBounds.cursor, options: options)
  }
}
