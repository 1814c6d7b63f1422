internal import TidemarkEngine

/// States of something in a store, as it changes: the first at once, then one whenever it is
/// another.
///
/// Commits that come while a state is dealt with make one new state: nothing is buffered, and the
/// newest one always comes. The sequence ends when the store is closed or the task is cancelled.
public struct Observed<Element: Sendable>: AsyncSequence, Sendable {
  /// `coding`, `damaged`, `indexMissing` and the like.
  public typealias Failure = any Error

  let store: Store
  let interval: Duration
  let begin: @Sendable () -> any Watcher<Element>
  /// Waits for the rest of an interval.
  var sleep: @Sendable (Duration) async throws -> Void = { try await Task.sleep(for: $0) }

  package init(
    store: Store, interval: Duration, begin: @escaping @Sendable () -> any Watcher<Element>
  ) {
    self.store = store
    self.interval = interval
    self.begin = begin
  }

  /// Begins to follow.
  public func makeAsyncIterator() -> Iterator { Iterator(self) }

  /// One follower.
  public struct Iterator: AsyncIteratorProtocol {
    private let observed: Observed
    private let watcher: any Watcher<Element>
    private var isOver = false
    /// When a state was delivered last, on the store's clock that never goes back.
    private var last: UInt64?

    init(_ observed: Observed) {
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
          // Sleeping throws only when the task is cancelled, which the loop sees.
          try? await observed.sleep(rest)
          if Task.isCancelled { break }
        }
        do {
          if let state = try watcher.look() {
            if observed.interval > .zero { last = nanoseconds }
            return state
          }
        } catch let error as TidemarkError where error.code == .closed {
          break
        } catch let error as TidemarkError where error.code == .suspended {
          // Resuming wakes, and closing does.
        } catch {
          isOver = true
          throw error
        }
        // The next look tells what has failed.
        try? await watcher.wakeup.sleep(reading: observed.store)
      }
      isOver = true
      return nil
    }

    /// The next state, once there is another one; nil when the store was closed or the task
    /// cancelled.
    public mutating func next() async throws -> Element? { try await next(isolation: nil) }

    private var nanoseconds: UInt64 {
      observed.store.engine.environment.clock.monotonicNanoseconds()
    }

    /// How long the next state has to wait; nil when it need not.
    private var restOfInterval: Duration? {
      guard let last else { return nil }
      let passed = Duration.nanoseconds(Int64(clamping: nanoseconds &- last))
      return passed < observed.interval ? observed.interval - passed : nil
    }
  }
}

/// Looks at something in a store when it may have changed.
package protocol Watcher<State>: Sendable {
  associatedtype State: Sendable
  var wakeup: Signal { get }
  /// The state, if it is another one than the last; one look at a time.
  func look() throws -> State?
}

/// Watches the value of some keys.
package final class ValueWatcher<State: Sendable & Equatable>: Watcher {
  private let held: HeldWatch
  private let read: @Sendable () throws -> State
  /// The state that was delivered last; nil before the first.
  private let last = Lock<State?>(nil)

  package init(_ held: HeldWatch, _ read: @escaping @Sendable () throws -> State) {
    self.held = held
    self.read = read
  }

  package var wakeup: Signal { held.watch.wakeup }

  package func look() throws -> State? {
    let news = held.watch.takeNews()
    guard !news.isEmpty || last.withLock({ $0 == nil }) else { return nil }
    do {
      let state = try read()
      return last.withLock { last in
        if last == .some(state) { return nil }
        last = state
        return state
      }
    } catch {
      // The look is made up for when the store can be read again.
      held.watch.noteAll()
      throw error
    }
  }
}

extension Store {
  /// The value of a key, as it changes: at once, then whenever it is another one.
  ///
  /// ```swift
  /// for try await value in store.values(forKey: "settings") { show(value) }
  /// ```
  /// - Parameters:
  ///   - key: the key.
  ///   - interval: the least time between two values.
  public func values(
    forKey key: some BytesConvertible, minimumInterval interval: Duration = .zero
  ) -> Observed<[UInt8]?> {
    let key = Key(key)
    return Observed(store: self, interval: interval) { [self] in
      ValueWatcher(hub.watch(key: key.bytes)) { try self.value(forKey: key) }
    }
  }

  /// The entries of a query, as they change: all of them at once, then whenever one is another.
  ///
  /// Each time the query is asked anew; ``ObjectCollection/observe(_:sort:limit:minimumInterval:)``
  /// looks only at what has changed.
  /// - Parameters:
  ///   - query: which entries.
  ///   - interval: the least time between two states.
  public func observe(
    _ query: EntryQuery, minimumInterval interval: Duration = .zero
  ) -> Observed<[Entry]> {
    Observed(store: self, interval: interval) { [self] in
      ValueWatcher(hub.watch(prefix: query.prefix.bytes)) {
        var rows = try self.entries(query)
        var entries: [Entry] = []
        while let entry = try rows.next() { entries.append(entry) }
        return entries
      }
    }
  }

  /// How many entries a query has, as that changes.
  /// - Parameters:
  ///   - query: which entries.
  ///   - interval: the least time between two counts.
  public func observeCount(
    _ query: EntryQuery = EntryQuery(), minimumInterval interval: Duration = .zero
  ) -> Observed<Int> {
    Observed(store: self, interval: interval) { [self] in
      ValueWatcher(hub.watch(prefix: query.prefix.bytes)) { try self.count(query) }
    }
  }
}
