internal import TidemarkEngine

/// The sync of a cache's collection in this process: one at a time.
final class CollectionGate: Sendable {
  private struct State {
    var isBusy = false
    var failure: (any Error)?
  }

  private let state = Lock(State())

  /// Why the last sync has failed; nil where it has not.
  var failure: (any Error)? { state.withLock { $0.failure } }

  /// - Throws: `busy`.
  func enter() throws(TidemarkError) {
    try state.withLock { (state: inout State) throws(TidemarkError) in
      guard !state.isBusy else {
        throw TidemarkError(.busy, "the cache is being brought up to date already; await that")
      }
      state.isBusy = true
    }
  }

  func leave(_ failure: (any Error)?) {
    state.withLock { state in
      state.isBusy = false
      state.failure = failure
    }
  }
}
