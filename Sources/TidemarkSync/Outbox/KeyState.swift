public import Tidemark
internal import TidemarkEngine

/// How far a key has come towards a peer.
public enum KeyState: Sendable, Hashable {
  /// The peer has what the key holds, or it came from there.
  case synced
  /// The key's newest entry is not synced.
  case waiting(PendingState)
  /// It is none of the peer's business: there is nothing, it is cached, it lies outside of the
  /// scope, or it was put and deleted before the peer had heard of it.
  case local
}

extension HostState {
  mutating func states(ofKeys keys: [[UInt8]]) throws(TidemarkError) -> [KeyState] {
    let table = try pending()
    let session = try session()
    return try keys.map { (key) throws(TidemarkError) in
      guard let newest = try log.newestChange(ofKey: key),
        newest.attributes.entryClass == .owned, newest.kind != .evict
      else { return .local }
      if table.row(newest.sequence) != nil { return .waiting(try state(of: newest)) }
      let isThere = newest.attributes.origin != nil || session.position(of: newest) != nil
      return isThere ? .synced : .local
    }
  }
}

extension Replicator {
  /// How far a key has come: for a mark beside a row of a list.
  public func state(
    forKey key: some BytesConvertible
  ) async throws(TidemarkError) -> KeyState {
    try await states(forKeys: [Key(key)])[0]
  }

  /// How far keys have come, in their order.
  public func states(forKeys keys: [Key]) async throws(TidemarkError) -> [KeyState] {
    let bytes = keys.map(\.bytes)
    return try await host.told { try $0.states(ofKeys: bytes) }
  }

  /// How far keys have come, in their order, now and whenever one of them has changed.
  ///
  /// The sequence ends when its reader stops, and fails when the store does. A slow reader misses
  /// what lies between, never the last.
  public func stateChanges(forKeys keys: [Key]) -> AsyncThrowingStream<[KeyState], any Error> {
    let (stream, continuation) = AsyncThrowingStream.makeStream(
      of: [KeyState].self, bufferingPolicy: .bufferingNewest(1))
    let task = Task { [self] in
      do {
        try await watch(keys) { continuation.yield($0) }
        continuation.finish()
      } catch { continuation.finish(throwing: error) }
    }
    continuation.onTermination = { _ in task.cancel() }
    return stream
  }

  private func watch(_ keys: [Key], _ body: ([KeyState]) -> Void) async throws {
    // Writes raise it; the host tells what becomes of them.
    let (written, engine) = (Signal(), store.engine)
    let token = engine.observe { written.raise() }
    defer { engine.stopObserving(token) }
    var last: [KeyState]?
    while !Task.isCancelled {
      let (seen, heard) = (written.count, host.changed.count)
      let states = try await states(forKeys: keys)
      if states != last { body(states) }
      last = states
      await withTaskGroup(of: Void.self) { group in
        group.addTask { await written.wait(beyond: seen) }
        group.addTask { [host] in await host.changed.wait(beyond: heard) }
        await group.next()
        group.cancelAll()
      }
    }
  }
}

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
