internal import TidemarkEngine

/// The states of a value or a query in a store, as an asynchronous sequence. The first state comes
/// at once; each later one differs from the one that was delivered last.
///
/// States are not buffered: all commits between two calls of `next()` make one state, the newest.
/// The sequence ends when the store is closed or the task is cancelled.
public struct LiveValues<Element: Sendable>: AsyncSequence, Sendable {
  /// The sequence can throw any error, most often a `TidemarkError` such as `coding`, `damaged` or
  /// `indexMissing`.
  public typealias Failure = any Error

  let store: Store
  let interval: Duration
  let begin: @Sendable () -> any Watcher<Element>
  /// Waits for the rest of an interval; tests set another.
  var sleep: @Sendable (Duration) async throws -> Void = { try await Task.sleep(for: $0) }

  package init(
    store: Store, interval: Duration, begin: @escaping @Sendable () -> any Watcher<Element>
  ) {
    (self.store, self.interval) = (store, interval)
    self.begin = begin
  }

  /// Starts to watch the store. Each iterator watches on its own.
  public func makeAsyncIterator() -> Iterator { Iterator(self) }

  /// One pass over the states, for one task.
  public struct Iterator: AsyncIteratorProtocol {
    private let observed: LiveValues
    private let watcher: any Watcher<Element>
    private var isOver = false
    /// When a state was delivered last, in nanoseconds of the store's monotonic clock.
    private var lastDelivery: UInt64?

    init(_ observed: LiveValues) {
      self.observed = observed
      watcher = observed.begin()
    }

    /// The next state, once there is another one; nil when the store was closed or the task
    /// cancelled.
    public mutating func next(
      isolation actor: isolated (any Actor)? = #isolation
    ) async throws -> Element? {
      while !isOver, !Task.isCancelled {
        if let rest = restOfInterval {
          // It throws only when the task is cancelled, and the next line asks for that.
          try? await observed.sleep(rest)
          if Task.isCancelled { break }
        }
        do {
          if let state = try watcher.look() {
            if observed.interval > .zero { lastDelivery = nanoseconds }
            return state
          }
        } catch let error as TidemarkError where error.code == .closed {
          break
        } catch let error as TidemarkError where error.code == .suspended {
          // Sleeps on below: `resume()` and `close()` raise the signals of all watchers.
        } catch {
          isOver = true
          throw error
        }
        // What refreshing a read-only store throws is passed over: the next sleep refreshes again.
        try? await watcher.held.watch.wakeup.sleep(reading: observed.store)
      }
      isOver = true
      return nil
    }

    /// Waits for the next state; see ``next(isolation:)``.
    public mutating func next() async throws -> Element? { try await next(isolation: nil) }

    private var nanoseconds: UInt64 {
      observed.store.engine.environment.clock.monotonicNanoseconds()
    }

    /// How long the next state has to wait; nil when it need not.
    private var restOfInterval: Duration? {
      guard let lastDelivery else { return nil }
      let passed = Duration.nanoseconds(Int64(clamping: nanoseconds &- lastDelivery))
      return passed < observed.interval ? observed.interval - passed : nil
    }
  }
}

/// Finds out the states of something in a store for one iterator of ``LiveValues``.
package protocol Watcher<State>: Sendable {
  associatedtype State: Sendable
  /// The watch that tells when the state may have changed; it ends with the watcher.
  var held: HeldWatch { get }
  /// The state, or nil where it equals the one that was returned last; one call at a time.
  func look() throws -> State?
}

/// Reads a state anew whenever some of its keys were written.
package final class ValueWatcher<State: Sendable & Equatable>: Watcher {
  package let held: HeldWatch
  private let read: @Sendable () throws -> State
  /// The state that was delivered last; nil before the first.
  private let last = Lock<State?>(nil)

  package init(_ held: HeldWatch, _ read: @escaping @Sendable () throws -> State) {
    self.held = held
    self.read = read
  }

  package func look() throws -> State? {
    try held.look { news in
      guard !news.isEmpty || last.withLock({ $0 == nil }) else { return nil }
      let state = try read()
      return last.withLock { last in
        if last == .some(state) { return nil }
        last = state
        return state
      }
    }
  }
}

extension Store {
  /// Follows the value of a key: delivers the value at once, then each time it changes; nil while
  /// the key is absent.
  ///
  /// ```swift
  /// for try await value in store.values(forKey: "settings") { show(value) }
  /// ```
  /// - Parameters:
  ///   - key: the key.
  ///   - interval: the least time between two values.
  public func values(
    forKey key: some BytesConvertible, minimumInterval interval: Duration = .zero
  ) -> LiveValues<[UInt8]?> {
    let key = Key(key)
    return LiveValues(store: self, interval: interval) { [self] in
      ValueWatcher(hub.watch(key: key.bytes)) { try self.value(forKey: key) }
    }
  }

  /// Follows the entries of a query: delivers all of them at once, then again each time one
  /// changes.
  ///
  /// Each time the query is run anew; ``ObjectCollection/observe(_:sort:limit:minimumInterval:)``
  /// looks only at what has changed.
  /// - Parameters:
  ///   - query: which entries.
  ///   - interval: the least time between two states.
  public func observe(
    _ query: EntryQuery, minimumInterval interval: Duration = .zero
  ) -> LiveValues<[Entry]> {
    LiveValues(store: self, interval: interval) { [self] in
      ValueWatcher(hub.watch(prefix: query.prefix.bytes)) {
        var entries: [Entry] = []
        try self.forEach(query) { entries.append($0) }
        return entries
      }
    }
  }

  /// Follows the number of entries of a query: delivers it at once, then each time it changes.
  /// - Parameters:
  ///   - query: which entries.
  ///   - interval: the least time between two counts.
  public func observeCount(
    _ query: EntryQuery = EntryQuery(), minimumInterval interval: Duration = .zero
  ) -> LiveValues<Int> {
    LiveValues(store: self, interval: interval) { [self] in
      ValueWatcher(hub.watch(prefix: query.prefix.bytes)) { try self.count(query) }
    }
  }
}
