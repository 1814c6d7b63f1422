/// The value of a key that is there, and then its source's: see ``Cache/reads(_:_:from:)``.
public struct CacheReads<Value: Sendable>: AsyncSequence, Sendable {
  let cache: Cache<Value>
  let key: Key
  let policy: ReadPolicy
  let source: CacheSource<Value>

  /// Begins to read.
  public func makeAsyncIterator() -> Iterator { Iterator(reads: self) }

  /// Reads one outcome after the other.
  public struct Iterator: AsyncIteratorProtocol {
    private enum Step {
      case look
      case ask(Cache<Value>.Look)
      case done
    }

    private let reads: CacheReads
    private var step = Step.look

    init(reads: CacheReads) { self.reads = reads }

    /// The next outcome; nil after the last.
    /// - Throws: `CancellationError`; what reading and writing the store throws.
    public mutating func next() async throws -> CacheRead<Value>? {
      let (cache, key, source) = (reads.cache, reads.key, reads.source)
      switch step {
      case .look:
        let look = try cache.look(key, reads.policy, source)
        guard look.entry != nil, look.next != .done else {
          step = .done
          guard look.next == .done else { return try await cache.fetch(key, look, source) }
          cache.region.count { $0.requestsAvoided += 1 }
          return look.read
        }
        // A value that is valid no more comes first where the policy says so.
        guard reads.policy == .cachedThenRefresh || look.next == .refresh else {
          step = .done
          return try await cache.fetch(key, look, source)
        }
        step = .ask(look)
        return CacheRead(stored: look.entry)
      case .ask(let look):
        step = .done
        return try await cache.fetch(key, look, source)
      case .done: return nil
      }
    }
  }
}
