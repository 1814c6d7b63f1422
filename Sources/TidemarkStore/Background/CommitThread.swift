internal import TidemarkEngine

/// The thread that syncs the log for tasks, which must not block a thread of their pool.
///
/// Tasks stage their entries themselves and wait here. The thread takes all who wait, leads one
/// sync through the highest of their sequences and resumes them: a group commit. The queue needs
/// no limit of its own, since staging makes writers wait at 16 MiB of unsynced log. It starts with
/// the first who waits.
final class CommitThread: Sendable {
  private struct Waiter {
    var sequence: UInt64
    var epoch: UInt64
    var continuation: CheckedContinuation<TidemarkError?, Never>
  }

  private struct State {
    var waiters: [Waiter] = []
    var isStopping = false
    var thread: WorkerThread?
  }

  private let engine: Engine
  private let state = Monitor(State())

  init(_ engine: Engine) { self.engine = engine }

  var isStarted: Bool { state.withLock { $0.thread != nil } }

  /// Lets the thread end once nobody waits any more.
  func stop() {
    state.withLock { $0.isStopping = true }
    state.broadcast()
  }

  /// Waits for the thread to end; after ``stop()`` only.
  func join() { state.withLock { $0.thread }?.join() }

  /// Returns once everything up to a sequence is on the disk.
  func wait(through sequence: UInt64, of epoch: UInt64) async throws(TidemarkError) {
    if engine.reader.isDurable(sequence, of: epoch) { return }
    let failure = await withCheckedContinuation { continuation in
      let waiter = Waiter(sequence: sequence, epoch: epoch, continuation: continuation)
      do throws(TidemarkError) {
        if try enqueue(waiter) { return state.broadcast() }
        continuation.resume(returning: outcome(of: waiter, after: nil))
      } catch {
        // This thread syncs where no other can be had: what becomes of the entry must be known.
        sync(waiter)
      }
    }
    if let failure { throw failure }
  }

  /// - Returns: false when the thread is ending.
  /// - Throws: when it cannot be started.
  private func enqueue(_ waiter: Waiter) throws(TidemarkError) -> Bool {
    try state.withLock { (state: inout State) throws(TidemarkError) in
      guard !state.isStopping else { return false }
      if state.thread == nil {
        state.thread = try WorkerThread(name: "tidemark-commit") { [self] in run() }
      }
      state.waiters.append(waiter)
      return true
    }
  }

  private func run() {
    while true {
      let waiters = state.wait { state -> [Waiter]? in
        if state.waiters.isEmpty { return state.isStopping ? [] : nil }
        defer { state.waiters = [] }
        return state.waiters
      }
      if waiters.isEmpty { return }
      // The sync of the first does for all that were not lost.
      for waiter in waiters.sorted(by: { $0.sequence > $1.sequence }) { sync(waiter) }
    }
  }

  private func sync(_ waiter: Waiter) {
    var failure: TidemarkError?
    if !engine.reader.isDurable(waiter.sequence, of: waiter.epoch) {
      do { try engine.writer.sync(through: waiter.sequence, of: waiter.epoch) } catch {
        failure = error
      }
      failure = outcome(of: waiter, after: failure)
    }
    waiter.continuation.resume(returning: failure)
  }

  /// The error that one who waits is told; nil when the entry is safe, whatever befell others.
  private func outcome(of waiter: Waiter, after failure: TidemarkError?) -> TidemarkError? {
    if engine.reader.isDurable(waiter.sequence, of: waiter.epoch) { return nil }
    return TidemarkError.unknownOutcome(
      of: waiter.sequence,
      after: failure
        ?? TidemarkError(.closed, "the store was closed or suspended before the sync"))
  }
}

extension TidemarkError {
  /// The outcome of an entry that was staged and whose sync failed: somebody may have read it,
  /// and whether it is kept shows when the store is reopened.
  static func unknownOutcome(of sequence: UInt64, after error: TidemarkError) -> TidemarkError {
    if error.code == .unknownOutcome { return error }
    return TidemarkError(
      .unknownOutcome,
      "the entry could not be made durable; whether it is kept shows when the store is reopened",
      sequences: sequence...sequence, cause: error)
  }
}
