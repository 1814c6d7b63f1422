internal import TidemarkEngine

extension LiveValues {
  /// Reads the present state on the caller's thread, and goes on with the states that come after.
  ///
  /// One watcher serves both, so that nothing is read twice and no commit is missed in between.
  /// - Returns: the first state, nil while the store is suspended; and the rest, for one iterator,
  ///   which has the first state after `resume()`.
  package func started() throws -> (first: Element?, rest: LiveValues) {
    let watcher = begin()
    var first: Element?
    do { first = try watcher.look() } catch let error as TidemarkError {
      guard error.code == .suspended else { throw error }
    }
    return (first, LiveValues(store: store, interval: interval) { watcher })
  }
}
