internal import Tidemark
internal import TidemarkEngine

/// Runs calls on threads of their own, one at a time: a call goes on until it pauses, and whoever
/// lets it go on waits for that. So calls interleave within each other, and the same choices give
/// the same order.
final class Interleaver: Sendable {
  private struct State {
    var begun = 0
    /// The call that runs; nil while the thread runs that chooses.
    var running: Int?
    var ended: Set<Int> = []
  }

  private let state = Monitor(State())

  /// Begins a call; returns once it has paused or ended.
  func begin(_ body: @escaping @Sendable () -> Void) throws(TidemarkError) -> Int {
    let call = state.withLock { state in
      state.begun += 1
      state.running = state.begun
      return state.begun
    }
    _ = try WorkerThread(name: "call") { [self] in
      body()
      state.withLock { state in
        state.ended.insert(call)
        state.running = nil
      }
      state.broadcast()
    }
    state.wait { $0.running == nil }
    return call
  }

  /// Lets a call go on; returns once it has paused or ended.
  func resume(_ call: Int) {
    state.withLock { $0.running = call }
    state.broadcast()
    state.wait { $0.running == nil }
  }

  func hasEnded(_ call: Int) -> Bool { state.withLock { $0.ended.contains(call) } }

  /// Lets others go on; called by a call that runs. Does nothing on the thread that chooses.
  func pause() {
    let call = state.withLock { state in
      defer { state.running = nil }
      return state.running
    }
    guard let call else { return }
    state.broadcast()
    state.wait { $0.running == call }
  }
}
