internal import Tidemark
internal import TidemarkEngine

/// The pending entries of the status. Every entry is looked at once, which costs more than half of
/// what it costs to write it: a program that writes while its server is off must not pay for a
/// number that nobody looks at.
extension Replicator {
  /// So many new entries are counted whether somebody looks or not.
  private static let countedUnasked: UInt64 = 1024

  /// Counts what is pending before the replicator waits; where much was written and nobody looks,
  /// that is left until somebody does, or until the writers pause.
  func countUnlessMuch() async {
    let through = state.withLock { $0.countedThrough ?? 0 }
    guard hasObservers || store.lastSequence &- through <= Self.countedUnasked else {
      return state.withLock { $0.isCountDue = true }
    }
    await countPending(always: true)
  }

  /// Counts what is pending every second: in which something was written, while somebody looks;
  /// in which next to nothing was, while a count is due.
  func keepCounting() async throws -> Bool {
    while true {
      let (seen, sequence) = (news.count, store.lastSequence)
      try await Task.sleep(for: .seconds(1))
      let isQuiet = store.lastSequence &- sequence <= Self.countedUnasked
      if hasObservers ? news.count != seen : isQuiet && state.withLock({ $0.isCountDue }) {
        await countPending(always: true)
      }
    }
  }

  /// Brings the pending entries of the status up to date.
  /// - Parameter always: also when that was done just now.
  func countPending(always: Bool) async {
    let now = store.engine.environment.clock.monotonicNanoseconds()
    let isDue = state.withLock { state in
      guard always || !state.observers.isEmpty && now &- state.counted >= 1_000_000_000 else {
        return false
      }
      state.counted = now
      return true
    }
    let through = store.lastSequence
    guard isDue, let pending = try? await host.perform({ try $0.pendingSummary() }) else { return }
    note(pending, through: through)
  }

  /// Counts on the calling thread, unless the count is up to date or a call is under way.
  func countHere() {
    let through = store.lastSequence
    let isDue = state.withLock { state in
      guard let counted = state.countedThrough else { return true }
      let isCalling = [.connecting, .pushing, .pulling].contains(state.status.phase)
      return counted != through && !isCalling
    }
    guard isDue, let pending = try? host.toldHere({ try $0.pendingSummary() }) else { return }
    note(pending, through: through)
  }

  func note(_ pending: PendingSummary, through sequence: UInt64) {
    state.withLock { state in
      state.countedThrough = max(state.countedThrough ?? 0, sequence)
      state.isCountDue = false
    }
    change { $0.pending = pending }
  }
}
