internal import TidemarkEngine

/// The news for a watcher: the keys that were written since it looked last.
package final class CommitWatch: Sendable {
  /// So many keys are told one by one; beyond that a watcher looks at everything anew.
  private static let mostKeys = 1_024

  package struct News: Sendable {
    package var keys: [[UInt8]] = []
    /// Whether everything may have changed.
    package var isAll = false

    package var isEmpty: Bool { keys.isEmpty && !isAll }
  }

  package let wakeup = Signal()
  private let news = Lock(News())

  /// Notes that a key was written.
  /// - Returns: whether nothing had been noted since the watcher looked last: then it is woken.
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

  package func noteAll() { news.withLock { $0 = News(isAll: true) } }

  package func takeNews() -> News {
    news.withLock { news in
      defer { news = News() }
      return news
    }
  }
}

/// Tells watchers which of their keys were written, right after the commit.
///
/// A commit costs a look for each of its keys, however many watch others.
package final class CommitHub: Sendable {
  private struct State {
    /// Watchers of one key each, by its hash.
    var keys: [UInt64: [CommitWatch]] = [:]
    var prefixes: [(prefix: [UInt8], watches: [CommitWatch])] = []
    /// Watchers that have heard something of the commit that is being told.
    var due: [CommitWatch] = []

    mutating func tell(_ watches: [CommitWatch], _ key: RawSpan) {
      for watch in watches {
        // One that has other news is due already, or was woken for them.
        if watch.note(key) { due.append(watch) }
      }
    }
  }

  private let state: Lock<State>
  private let seed: UInt64
  private let listener: CommitListener

  init(_ engine: Engine) {
    let state = Lock(State())
    let seed = engine.reader.hashSeed
    self.state = state
    self.seed = seed
    listener = CommitListener(
      seed: seed,
      keyWritten: { key, hash in
        state.withLock { state in
          if let watches = state.keys[hash] { state.tell(watches, key) }
          for row in state.prefixes
          where key.byteCount >= row.prefix.count
            && key.extracting(first: row.prefix.count).isEqual(to: row.prefix.rawSpan)
          {
            state.tell(row.watches, key)
          }
        }
      },
      commitEnded: {
        let due = state.withLock { state in
          defer { state.due.removeAll(keepingCapacity: true) }
          return state.due
        }
        for watch in due { watch.wakeup.raise() }
      })
    engine.listen(with: listener)
  }

  package func watch(key: [UInt8]) -> HeldWatch {
    let hash = KeyHash.hash(key.rawSpan, seed: seed)
    return hold { [listener] state, watch in
      state.keys[hash, default: []].append(watch)
      listener.listen(to: hash)
    } end: { state, watch in
      state.keys[hash]?.removeAll { $0 === watch }
      if state.keys[hash]?.isEmpty == true { state.keys[hash] = nil }
    }
  }

  package func watch(prefix: [UInt8]) -> HeldWatch {
    hold { [listener] state, watch in
      if let row = state.prefixes.firstIndex(where: { $0.prefix == prefix }) {
        state.prefixes[row].watches.append(watch)
      } else {
        state.prefixes.append((prefix, [watch]))
      }
      listener.listenToAll()
    } end: { state, watch in
      guard let row = state.prefixes.firstIndex(where: { $0.prefix == prefix }) else { return }
      state.prefixes[row].watches.removeAll { $0 === watch }
      if state.prefixes[row].watches.isEmpty { state.prefixes.remove(at: row) }
    }
  }

  private func hold(
    _ begin: (inout State, CommitWatch) -> Void,
    end: @escaping @Sendable (inout State, CommitWatch) -> Void
  ) -> HeldWatch {
    let watch = CommitWatch()
    state.withLock { begin(&$0, watch) }
    return HeldWatch(watch) { [state, listener] in
      state.withLock { state in
        end(&state, watch)
        listener.stopListening(toAll: state.prefixes.isEmpty, toKeys: state.keys.isEmpty)
      }
    }
  }

  /// Tells those who watch a key that what is read there has changed without an entry of the key,
  /// as the state of a projection does.
  package func tell(_ key: [UInt8]) { listener.note(key.rawSpan) }

  /// Whether nobody watches anything; for tests.
  var isIdle: Bool { state.withLock { $0.keys.isEmpty && $0.prefixes.isEmpty } }

  /// Lets everybody look at everything anew: another process may have written.
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

/// A watch that ends with the last who holds it.
package final class HeldWatch: Sendable {
  package let watch: CommitWatch
  private let end: @Sendable () -> Void

  fileprivate init(_ watch: CommitWatch, end: @escaping @Sendable () -> Void) {
    self.watch = watch
    self.end = end
  }

  deinit { end() }
}
