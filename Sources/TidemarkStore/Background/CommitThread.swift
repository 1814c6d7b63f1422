internal import TidemarkEngine

/// The thread that syncs the log for tasks, which must not block a thread of their pool.
///
/// A task stages its entries itself (they are visible then, but not durable) and awaits the sync
/// here. The thread takes all waiters, leads one sync through the highest of their sequences and
/// resumes them: a group commit. The queue needs no limit of its own, since staging makes writers
/// wait at 16 MiB of unsynced log. The first waiter starts the thread. The store owns this object.
final class CommitThread: Sendable {
  /// A task that awaits a sync. After a suspension the same sequence may belong to another entry;
  /// the epoch, in which the sequence was given out, tells them apart.
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

  /// Lets the thread end once it has resumed all waiters; later ones are not queued.
  func stop() {
    state.withLock { $0.isStopping = true }
    state.broadcast()
  }

  /// Waits for the thread to end; after ``stop()`` only.
  func join() { state.withLock { $0.thread }?.join() }

  /// Returns once everything up to a sequence is on the disk.
  /// - Throws: `unknownOutcome` when that could not be reached.
  func wait(through sequence: UInt64, of epoch: UInt64) async throws(TidemarkError) {
    if engine.reader.isDurable(sequence, of: epoch) { return }
    let failure = await withCheckedContinuation { continuation in
      let waiter = Waiter(sequence: sequence, epoch: epoch, continuation: continuation)
      do throws(TidemarkError) {
        if try enqueue(waiter) { return state.broadcast() }
        // The store is closed, which has synced the entry unless it failed.
        continuation.resume(returning: outcome(of: waiter, after: nil))
      } catch {
        // No thread can be started. The entry is staged and visible, so failing is no answer: the
        // task's own thread blocks for the sync.
        sync(waiter)
      }
    }
    if let failure { throw failure }
  }

  /// - Returns: false after ``stop()``: the thread may not see the waiter any more.
  /// - Throws: when the thread cannot be started; then the waiter is not queued.
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
      // Highest sequence first: its sync makes the others durable, too, which then return at once.
      for waiter in waiters.sorted(by: { $0.sequence > $1.sequence }) { sync(waiter) }
    }
  }

  /// Syncs the log through a waiter's sequence, if need be, and resumes the waiter, once.
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

  /// The error for a waiter; nil when its entry is durable, even if the sync failed for others.
  private func outcome(of waiter: Waiter, after failure: TidemarkError?) -> TidemarkError? {
    if engine.reader.isDurable(waiter.sequence, of: waiter.epoch) { return nil }
    let shut = TidemarkError(.closed, "the store was closed or suspended before the sync")
    return TidemarkError.unknownOutcome(of: waiter.sequence, after: failure ?? shut)
  }
}

extension TidemarkError {
  /// The error for an entry that was staged and whose sync failed: readers may have seen the entry,
  /// and only reopening the store tells whether it is kept.
  static func unknownOutcome(of sequence: UInt64, after error: TidemarkError) -> TidemarkError {
    if error.code == .unknownOutcome { return error }
    return TidemarkError(
      .unknownOutcome,
      "the entry could not be made durable; whether it is kept shows when the store is reopened",
      sequences: sequence...sequence, cause: error)
  }
}
