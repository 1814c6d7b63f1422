internal import TidemarkEngine

/// Lets one task sleep until something has happened; what happens while it is awake is not lost.
package final class Wakeup: Sendable {
  private let signal = Signal()
  private let seen = Lock<UInt64>(0)

  /// Wakes the task, or keeps it from falling asleep the next time.
  package func wake() { signal.raise() }

  /// Sleeps until somebody has called ``wake()`` since the last sleep, or the task is cancelled.
  package func sleep() async {
    await signal.wait(beyond: seen.withLock { $0 })
    let count = signal.count
    seen.withLock { $0 = count }
  }
}

/// Wakes a task at every change of the visible or the durable sequence, as long as it lives.
package final class SequenceWatch: Sendable {
  package let wakeup = Wakeup()
  private let engine: Engine
  private let token: Int

  package init(_ engine: Engine) {
    self.engine = engine
    token = engine.observe { [wakeup] in wakeup.wake() }
  }

  deinit { engine.stopObserving(token) }
}
