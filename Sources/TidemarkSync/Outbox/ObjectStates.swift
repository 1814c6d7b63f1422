public import Tidemark
internal import TidemarkEngine

extension ObjectCollection {
  /// How far objects have come towards a peer, by their ids: for a mark beside each row of a list.
  ///
  /// ```swift
  /// let states = try await notes.syncState(of: list.ids, by: replicator)
  /// ```
  public func syncState(
    of ids: [ID], by replicator: Replicator
  ) async throws(TidemarkError) -> [ID: KeyState] {
    let keys = try ids.map { (id) throws(TidemarkError) in try key(for: id) }
    let states = try await replicator.states(forKeys: keys)
    return Dictionary(zip(ids, states), uniquingKeysWith: { first, _ in first })
  }

  /// The same, now and whenever one of them has changed; see ``Replicator/stateChanges(forKeys:)``.
  public func syncStates(
    of ids: [ID], by replicator: Replicator
  ) throws(TidemarkError) -> some AsyncSequence<[ID: KeyState], any Error> & Sendable {
    let keys = try ids.map { (id) throws(TidemarkError) in try key(for: id) }
    return replicator.stateChanges(forKeys: keys).map { states in
      Dictionary(zip(ids, states), uniquingKeysWith: { first, _ in first })
    }
  }
}
