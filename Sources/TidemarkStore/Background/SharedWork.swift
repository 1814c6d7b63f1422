internal import TidemarkEngine

/// Work in parts that the caller's thread does together with one more, where one is to be had.
///
/// In the whole process one thread helps at a time: what is read is mostly wanted soon, and
/// programs have other work for their processors. The caller never waits for a thread that has
/// not begun, and the thread keeps nothing of the work beyond its last part.
package enum SharedWork {
  private struct State {
    var work: (@Sendable (Int) -> Void)?
    var count: Int
    var next = 0
    var done = 0
  }

  /// Raised while a thread helps.
  private static let helper = AtomicSignal()

  /// Does all parts.
  /// - Parameters:
  ///   - count: how many parts there are.
  ///   - usesThread: whether a thread may help.
  ///   - work: does the part of a number; on either thread.
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
    guard helper.raise() else { return }
    let thread = try? WorkerThread(name: "tidemark-share") {
      while doNext(state) {}
      helper.take()
    }
    // Without a thread the caller does everything.
    if thread == nil { helper.take() }
  }

  /// Does a part that nobody has begun.
  /// - Returns: false when there is none.
  private static func doNext(_ state: Monitor<State>) -> Bool {
    guard takeNext(state) else { return false }
    let isLast = state.withLock { state in
      state.done += 1
      return state.done == state.count
    }
    if isLast { state.signal() }
    return true
  }

  /// The references of the work are let go of here, before the part counts as done.
  @inline(never)
  private static func takeNext(_ state: Monitor<State>) -> Bool {
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
