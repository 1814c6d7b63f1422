internal import TidemarkEngine

/// A watcher's mailbox: the keys that were written since the watcher took the news last. Threads
/// that commit fill it by way of ``CommitHub``; the watcher's task empties it.
package final class CommitWatch: Sendable {
  /// With more keys than this the news only say that everything may have changed.
  private static let mostKeys = 1_024

  package struct News: Sendable {
    package var keys: [[UInt8]] = []
    /// Whether any key may have changed; then `keys` is empty.
    package var isAll = false
    package var isEmpty: Bool { keys.isEmpty && !isAll }
  }

  /// Raised when there are news.
  package let wakeup = Signal()
  private let news = Lock(News())

  /// Adds a key that was written.
  /// - Returns: whether it is the first since the watcher took the news: only then need the caller
  ///   raise `wakeup`, since a watcher that was woken takes all news that have come by then.
  func note(_ key: RawSpan) -> Bool {
    news.withLock { news in
      guard !news.isAll else { return false }
      guard news.keys.count < Self.mostKeys else {
        news = News(isAll: true)
        return false
      }
      news.keys.append([UInt8](copying: key))
      return news.keys.count == 1
    }
  }

  /// Notes that any key may have changed; the caller raises `wakeup` where the watcher may sleep.
  func noteAll() { news.withLock { $0 = News(isAll: true) } }

  package func takeNews() -> News {
    news.withLock { news in
      defer { news = News() }
      return news
    }
  }
}

/// Tells the watchers of keys and prefixes which of their keys were written: right after a commit,
/// on the thread that commits, without the writer's lock.
///
/// For each of its keys a commit looks up the key's hash and compares all watched prefixes.
package final class CommitHub: Sendable {
  private struct State {
    /// Watchers of one key each, by its hash; of another key with this hash they hear needlessly.
    var keys: [UInt64: [CommitWatch]] = [:]
    var prefixes: [(prefix: [UInt8], watches: [CommitWatch])] = []
    /// Watchers to wake when the commit ends. Of two commits at a time the first to end wakes those
    /// of both, which does no harm: each key that was noted is visible to readers.
    var due: [CommitWatch] = []

    mutating func tell(_ watches: [CommitWatch], _ key: RawSpan) {
      // A watcher with earlier news is in `due`, or was woken for them.
      for watch in watches where watch.note(key) { due.append(watch) }
    }
  }

  private let state: Lock<State>
  private let seed: UInt64
  private let listener: CommitListener

  init(_ engine: Engine) {
    let state = Lock(State())
    let seed = engine.reader.hashSeed
    (self.state, self.seed) = (state, seed)
    listener = CommitListener(
      seed: seed,
      keyWritten: { key, hash in
        state.withLock { state in
          if let watches = state.keys[hash] { state.tell(watches, key) }
          for row in state.prefixes where key.hasPrefix(row.prefix.rawSpan) {
            state.tell(row.watches, key)
          }
        }
      },
      commitEnded: {
        let due = state.withLock { state in
          defer { state.due.removeAll(keepingCapacity: true) }
          return state.due
        }
        // Without the lock, for which other commits wait.
        for watch in due { watch.wakeup.raise() }
      })
    engine.listen(with: listener)
  }

  package func watch(key: [UInt8]) -> HeldWatch {
    let hash = KeyHash.hash(key.rawSpan, seed: seed)
    return register { [listener] state, watch in
      state.keys[hash, default: []].append(watch)
      listener.listen(to: hash)
    } remove: { state, watch in
      state.keys[hash]?.removeAll { $0 === watch }
      if state.keys[hash]?.isEmpty == true { state.keys[hash] = nil }
    }
  }

  package func watch(prefix: [UInt8]) -> HeldWatch {
    register { [listener] state, watch in
      if let row = state.prefixes.firstIndex(where: { $0.prefix == prefix }) {
        state.prefixes[row].watches.append(watch)
      } else {
        state.prefixes.append((prefix, [watch]))
      }
      listener.listenToAll()
    } remove: { state, watch in
      guard let row = state.prefixes.firstIndex(where: { $0.prefix == prefix }) else { return }
      state.prefixes[row].watches.removeAll { $0 === watch }
      if state.prefixes[row].watches.isEmpty { state.prefixes.remove(at: row) }
    }
  }

  /// `add` and `remove` change the listener, too, so both run under the lock of `state`.
  private func register(
    _ add: (inout State, CommitWatch) -> Void,
    remove: @escaping @Sendable (inout State, CommitWatch) -> Void
  ) -> HeldWatch {
    let watch = CommitWatch()
    state.withLock { add(&$0, watch) }
    return HeldWatch(watch) { [state, listener] in
      state.withLock { state in
        remove(&state, watch)
        // The listener's filter of hashes cannot forget a single one: it is emptied with the last.
        listener.stopListening(toAll: state.prefixes.isEmpty, toKeys: state.keys.isEmpty)
      }
    }
  }

  /// Tells the watchers of a key that what they read has changed though no entry of the key was
  /// written, as the state of a projection does.
  package func tell(_ key: [UInt8]) { listener.note(key.rawSpan) }

  /// Whether nobody watches anything; for tests.
  var isIdle: Bool { state.withLock { $0.keys.isEmpty && $0.prefixes.isEmpty } }

  /// Wakes all watchers to read anew: the store was closed, or another process may have written.
  func tellAll() {
    let watches = state.withLock { state in
      state.keys.values.flatMap(\.self) + state.prefixes.flatMap(\.watches)
    }
    for watch in watches {
      watch.noteAll()
      watch.wakeup.raise()
    }
  }
}

/// A watch that the hub knows as long as this object lives.
package final class HeldWatch: Sendable {
  package let watch: CommitWatch
  private let unregister: @Sendable () -> Void

  fileprivate init(_ watch: CommitWatch, unregister: @escaping @Sendable () -> Void) {
    self.watch = watch
    self.unregister = unregister
  }

  deinit { unregister() }

  /// Calls `body`, which reads what is watched, with the news. What is written during the call is
  /// news for the next look.
  package func look<State, Failure: Error>(
    _ body: (CommitWatch.News) throws(Failure) -> State
  ) throws(Failure) -> State {
    do { return try body(watch.takeNews()) } catch {
      // The news are gone, and no state came of them: the next look must read in any case.
      watch.noteAll()
      throw error
    }
  }
}
