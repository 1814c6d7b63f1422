internal import TidemarkEngine

/// The thread on which a store compacts its log and sweeps attachments by itself. The store owns
/// this object and closes it with ``stop()`` and ``join()``; the thread starts with the first work.
final class CompactionThread: Sendable {
  private struct State {
    var isStopping = false
    /// Whether the thread is to look once more.
    var isDue = false
    var thread: WorkerThread?
    /// The error of the last look; nil when it succeeded.
    var failure: TidemarkError?
  }

  private let engine: Engine
  private let state = Monitor(State())

  init(_ engine: Engine) { self.engine = engine }

  var lastError: TidemarkError? { state.withLock { $0.failure } }

  /// Wakes the thread if it is time to look whether a compaction pays, or to sweep attachments.
  /// Called by the upkeep thread; several calls while the thread works ask for one look only.
  func compactIfDue() throws(TidemarkError) {
    guard engine.autoCompactor.isDue() || engine.attachments.isSweepDue else { return }
    try state.withLock { (state: inout State) throws(TidemarkError) in
      guard !state.isStopping else { return }
      state.isDue = true
      guard state.thread == nil else { return }
      state.thread = try WorkerThread(name: "tidemark-pack") { [self] in run() }
    }
    state.broadcast()
  }

  /// Lets the thread end, and breaks off a compaction that is running.
  func stop() {
    state.withLock { $0.isStopping = true }
    // Makes the running compaction fail with `closed` soon, and keeps another one from beginning.
    engine.autoCompactor.setAutomatic(false)
    state.broadcast()
  }

  /// Waits for the thread to end; after ``stop()`` only.
  func join() { state.withLock { $0.thread }?.join() }

  private func run() {
    while true {
      let isStopping = state.wait { state -> Bool? in
        guard state.isStopping || state.isDue else { return nil }
        state.isDue = false
        return state.isStopping
      }
      if isStopping { return }
      do {
        try engine.autoCompactor.compactIfWorthwhile()
        try engine.sweepAttachmentsIfDue()
        state.withLock { $0.failure = nil }
      } catch {
        state.withLock { $0.failure = error }
        if error.code != .closed {
          engine.store.tell(.failed, subject: "compaction", error: error)
        }
      }
    }
  }
}
