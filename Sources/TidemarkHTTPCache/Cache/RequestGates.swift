internal import TidemarkEngine

/// Lets one request of a kind through at a time; those who come meanwhile wait for it.
final class RequestGates: Sendable {
  private struct State {
    var waiting: [String: [UInt64: CheckedContinuation<Void, Never>]] = [:]
    var nextID: UInt64 = 1
  }

  private let state = Lock(State())

  /// Goes through, or waits until who went through has left.
  /// - Returns: whether the caller went through; then it must ``leave(_:)``.
  /// - Throws: `CancellationError`.
  func enter(_ key: String) async throws -> Bool {
    let id: UInt64? = state.withLock { state in
      guard state.waiting[key] != nil else {
        state.waiting[key] = [:]
        return nil
      }
      defer { state.nextID += 1 }
      return state.nextID
    }
    guard let id else { return true }
    await withTaskCancellationHandler {
      await withCheckedContinuation { continuation in
        let waits = state.withLock { state in
          // Nobody would wake one that comes too late or was cancelled before.
          guard !Task.isCancelled, state.waiting[key] != nil else { return false }
          state.waiting[key]?[id] = continuation
          return true
        }
        if !waits { continuation.resume() }
      }
    } onCancel: {
      state.withLock { $0.waiting[key]?.removeValue(forKey: id) }?.resume()
    }
    try Task.checkCancellation()
    return false
  }

  /// Goes through where nobody has.
  func enterIfFree(_ key: String) -> Bool {
    state.withLock { state in
      guard state.waiting[key] == nil else { return false }
      state.waiting[key] = [:]
      return true
    }
  }

  /// Lets those who wait go on.
  func leave(_ key: String) {
    let waiting = state.withLock { $0.waiting.removeValue(forKey: key) }
    for continuation in (waiting ?? [:]).values { continuation.resume() }
  }
}
