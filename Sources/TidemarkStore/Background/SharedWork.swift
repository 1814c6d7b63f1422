internal import TidemarkEngine

/// Work in parts, such as decoding objects, that the caller and at most one helper thread share.
///
/// In the whole process one helper runs at a time, since programs have other work for their
/// processors. Both take the next part that nobody has begun, so the caller never waits for a
/// helper that has not started, only for a part that the helper is at.
package enum SharedWork {
  private struct State {
    /// Nil once all parts are done: a helper that starts late must not keep what it captured.
    var work: (@Sendable (Int) -> Void)?
    var count: Int
    /// The first part that nobody has begun.
    var next = 0
    /// How many parts have ended.
    var done = 0
  }

  /// Raised while the process has a helper; whoever raises it must take it down again.
  private static let hasHelper = AtomicSignal()

  /// Does all parts, and returns when the last one has ended.
  /// - Parameters:
  ///   - count: how many parts there are.
  ///   - usesThread: whether a thread may help.
  ///   - work: does the part of a number; may be called on both threads at once.
  package static func forEach(
    _ count: Int, usesThread: Bool, _ work: @escaping @Sendable (Int) -> Void
  ) {
    let state = Monitor(State(work: work, count: count))
    if usesThread, count > 1, Processors.count > 1 { startHelper(state) }
    while doNext(state) {}
    state.wait { $0.done == count }
    state.withLock { $0.work = nil }
  }

  private static func startHelper(_ state: Monitor<State>) {
    // False when another call has raised it: that one has the helper, and this one goes without.
    guard hasHelper.raise() else { return }
    let thread = try? WorkerThread(name: "tidemark-share") {
      while doNext(state) {}
      hasHelper.take()
    }
    // The system gave no thread: nobody else takes the signal down, and the caller does all parts.
    if thread == nil { hasHelper.take() }
  }

  /// Does a part that nobody has begun.
  /// - Returns: false when there is none: all parts have begun, but perhaps not ended.
  private static func doNext(_ state: Monitor<State>) -> Bool {
    guard beginAndDoNext(state) else { return false }
    let isLast = state.withLock { state in
      state.done += 1
      return state.done == state.count
    }
    if isLast { state.signal() }  // only the caller waits, in `forEach`
    return true
  }

  /// Never inlined: its reference to `work` is released when it returns, before the part counts as
  /// done, so that the helper keeps nothing that `work` captured after `forEach` has returned.
  @inline(never)
  private static func beginAndDoNext(_ state: Monitor<State>) -> Bool {
    let taken = state.withLock { state -> (number: Int, work: @Sendable (Int) -> Void)? in
      guard state.next < state.count, let work = state.work else { return nil }
      defer { state.next += 1 }
      return (state.next, work)
    }
    guard let taken else { return false }
    taken.work(taken.number)
    return true
  }
}
