internal import TidemarkEngine

/// Reads cached values into the hot cache once a store is open, for a program to find them there.
/// It stops when that is half full: the program's own reads need the rest.
final class WarmUpThread: Sendable {
  private struct State {
    var isStopping = false
    var warmed = 0
    var thread: WorkerThread?
  }

  private let engine: Engine
  private let order: Store.Configuration.WarmUp
  private let budget: Int
  private let state = Lock(State())

  init(_ engine: Engine, _ order: Store.Configuration.WarmUp, budget: Int) {
    self.engine = engine
    self.order = order
    self.budget = budget
  }

  /// How many values it has read.
  var warmed: Int { state.withLock { $0.warmed } }

  /// Begins, on a thread of its own; where the system gives none, nothing is read.
  func start() {
    state.withLock { state in
      state.thread = try? WorkerThread(name: "tidemark-warm") { [self] in
        // A value that cannot be read now is told to who reads it.
        try? run()
      }
    }
  }

  /// Reads on the thread that calls it.
  func run() throws(TidemarkError) {
    var bytes = 0
    let saved = try SavedOrder.all(engine.writer, withUses: true)
    for use in chosen(saved.flatMap(\.uses)) {
      guard bytes + use.bytes <= budget, !state.withLock({ $0.isStopping }) else { return }
      guard let entry = try engine.reader.entryIfKept(at: use.sequence),
        try engine.reader.read(forKey: entry.key.rawSpan, { (_, _) in })
      else { continue }
      bytes += use.bytes
      state.withLock { $0.warmed += 1 }
    }
  }

  private func chosen(_ uses: [UseOrder.Use]) -> [UseOrder.Use] {
    switch order {
    case .none: []
    case .mostUsed: uses.sorted { ($0.count, $0.time) > ($1.count, $1.time) }
    case .mostRecent: uses.sorted { $0.time > $1.time }
    }
  }

  /// Lets the thread end after the value that it is at.
  func stop() { state.withLock { $0.isStopping = true } }

  /// Waits for the thread to end; after ``stop()`` only.
  func join() { state.withLock { $0.thread }?.join() }
}
