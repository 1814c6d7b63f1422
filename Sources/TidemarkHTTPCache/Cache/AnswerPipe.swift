internal import Tidemark
internal import TidemarkEngine
internal import TidemarkHTTP

/// Hands an answer on from the thread that receives it to the task that reads it.
///
/// The receiving thread waits while too much is unread, so that nothing piles up; the reader waits
/// without a thread.
final class AnswerPipe: Sendable {
  enum Part: Sendable {
    case head(HTTPTransportAnswer)
    /// A range of the body that is stored already.
    case stored(StoredContent, Range<Int>)
    case piece([UInt8])
  }

  private struct State {
    var parts: [Part] = []
    var bytes = 0
    /// Whether nobody reads any more.
    var isClosed = false
    var isEnded = false
  }

  /// Bytes that wait to be read before the receiving thread waits, too.
  static let mostBytes = 256 << 10

  private let state = Monitor(State())
  private let change = Signal()

  /// Hands a part on, or drops it where nobody reads.
  /// - Parameter stall: is called where the reader has to be waited for.
  func give(_ part: Part, stall: () -> Void) {
    let isFull = state.withLock { $0.bytes >= Self.mostBytes && !$0.isClosed }
    if isFull {
      stall()
      state.wait { $0.bytes < Self.mostBytes || $0.isClosed }
    }
    state.withLock { state in
      guard !state.isClosed else { return }
      state.parts.append(part)
      if case .piece(let bytes) = part { state.bytes += bytes.count }
    }
    change.raise()
  }

  /// Says that nothing comes any more.
  func end() {
    state.withLock { $0.isEnded = true }
    change.raise()
  }

  /// Says that nobody reads any more.
  func close() {
    state.withLock { $0 = State(isClosed: true) }
    state.broadcast()
  }

  /// The parts that have come since the last time; waits where there are none.
  /// - Returns: nothing at the end.
  /// - Throws: `CancellationError`.
  func next() async throws -> [Part] {
    let parts = try await change.first { () -> [Part]? in
      state.withLock { state in
        guard !state.parts.isEmpty || state.isEnded else { return nil }
        defer { (state.parts, state.bytes) = ([], 0) }
        return state.parts
      }
    }
    state.broadcast()
    try Task.checkCancellation()
    return parts
  }
}
