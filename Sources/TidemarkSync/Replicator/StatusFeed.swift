internal import Synchronization
internal import Tidemark
internal import TidemarkEngine

/// The status of a replicator, and streams of it.
///
/// A stream takes what it has not had yet when its reader asks. Nothing is pushed into it: who
/// resumes a task that is being cancelled waits for the task's cancellation handlers, so whoever
/// did that under the lock would wait for ever for a handler that asks for the status.
final class StatusFeed: Sendable {
  private struct State {
    /// The last 16 statuses at most, oldest first; the last element is the present status.
    var statuses = [SyncStatus()]
    /// The number of older statuses, which were dropped.
    var dropped = 0
    var isOver = false
  }

  private static let mostKept = 16

  private let state = Lock(State())
  private let change = Signal()
  private let readers = Atomic(0)

  /// The present status.
  var current: SyncStatus { state.withLock { $0.statuses[$0.statuses.count - 1] } }

  /// Whether there is a stream of it.
  var hasReaders: Bool { readers.load(ordering: .relaxed) != 0 }

  /// Sets a new status and wakes the readers of all streams; an equal status does neither.
  func change(_ body: (inout SyncStatus) -> Void) {
    state.withLock { state in
      let before = state.statuses[state.statuses.count - 1]
      var status = before
      body(&status)
      guard status != before else { return }
      if state.statuses.count == Self.mostKept {
        state.statuses.removeFirst()
        state.dropped += 1
      }
      state.statuses.append(status)
    }
    change.raise()
  }

  /// Ends all streams, once they have given what they have.
  func end() {
    state.withLock { $0.isOver = true }
    change.raise()
  }

  /// The present status and those after it.
  func stream() -> AsyncStream<SyncStatus> {
    let place = state.withLock { $0.dropped + $0.statuses.count - 1 }
    let reader = Reader(self, at: place)
    return AsyncStream { try? await reader.next() }
  }

  /// The place of one stream in the sequence of statuses. The stream releases it when it ends, or
  /// when nobody can read it any more.
  private final class Reader: Sendable {
    private let feed: StatusFeed
    /// The number of the next status.
    private let place: Lock<Int>

    init(_ feed: StatusFeed, at place: Int) {
      self.feed = feed
      self.place = Lock(place)
      feed.readers.add(1, ordering: .relaxed)
    }

    deinit { feed.readers.subtract(1, ordering: .relaxed) }

    /// Waits for the next status; nil when there is none any more.
    /// - Throws: `CancellationError`.
    func next() async throws -> SyncStatus? {
      try await feed.change.first { () -> SyncStatus?? in
        place.withLock { place in
          feed.state.withLock { state in
            let index = max(0, place - state.dropped)
            guard index < state.statuses.count else { return state.isOver ? .some(nil) : nil }
            place = state.dropped + index + 1
            return state.statuses[index]
          }
        }
      }
    }
  }
}
