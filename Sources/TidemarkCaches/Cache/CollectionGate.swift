internal import TidemarkEngine

/// The syncs and prefillings of a cache's collection in this process: one at a time.
final class CollectionGate: Sendable {
  private struct State {
    var isBusy = false
    var failure: (any Error)?
  }

  private let state = Lock(State())

  /// Why the last sync has failed; nil where it has not.
  var failure: (any Error)? { state.withLock { $0.failure } }

  /// Runs a sync and no other beside it.
  /// - Throws: `busy`; what `sync` throws.
  func run<Outcome>(_ sync: () async throws -> Outcome) async throws -> Outcome {
    try state.withLock { (state: inout State) throws(TidemarkError) in
      guard !state.isBusy else {
        throw TidemarkError(.busy, "the cache is being brought up to date already; await that")
      }
      state.isBusy = true
    }
    do {
      let outcome = try await sync()
      state.withLock { $0 = State() }
      return outcome
    } catch {
      let isCancelled = (error as? TidemarkError)?.code == .cancelled
      let failure: any Error = isCancelled ? CancellationError() : error
      state.withLock { $0 = State(failure: failure) }
      throw failure
    }
  }
}
