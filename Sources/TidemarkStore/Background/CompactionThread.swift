internal import TidemarkEngine

/// The thread on which a store compacts by itself; there is none until the first one is due.
final class CompactionThread: Sendable {
  private struct State {
    var isStopping = false
    var isDue = false
    var thread: WorkerThread?
    var failure: TidemarkError?
  }

  private let engine: Engine
  private let state = Monitor(State())

  init(_ engine: Engine) { self.engine = engine }

  var lastError: TidemarkError? { state.withLock { $0.failure } }

  /// Lets the thread look whether a compaction pays, if it is time for that.
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

  /// Breaks off what is running, and lets the thread end.
  func stop() {
    state.withLock { $0.isStopping = true }
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
      } catch { state.withLock { $0.failure = error } }
    }
  }
}
