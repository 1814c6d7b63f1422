public import Tidemark
internal import TidemarkEngine
public import TidemarkSyncProtocol

/// The keys in which a store and a peer differ: the result of
/// ``TidemarkStore/Store/difference(from:scope:)``. Each list is in byte order.
public struct PeerDifference: Sendable, Hashable {
  /// Keys that the local store has and the peer lacks, in byte order.
  public var onlyHere: [Key] = []
  /// Keys that the peer has and the local store lacks, in byte order.
  public var onlyThere: [Key] = []
  /// Keys that both sides have with different values, labels or attachments, in byte order.
  public var different: [Key] = []
  /// How many digests the comparison read; one if everything is equal.
  public var comparisons = 0

  /// Whether the store and the peer have the same entries.
  public var isEqual: Bool { onlyHere.isEmpty && onlyThere.isEmpty && different.isEmpty }
}

extension Store {
  /// Compares the store's entries with a peer's by digests, to verify replication: for equal parts
  /// of the keys only a digest is transferred, and only differing parts are divided further.
  /// Nothing is changed. Unsynced entries differ; cached ones do not count.
  /// - Parameters:
  ///   - peer: the peer.
  ///   - scope: the keys to compare.
  /// - Throws: `PeerError`, such as `busy` if writes to the peer never pause; errors of reading the
  ///   store.
  public func difference(
    from peer: any Peer, scope: SyncScope = .everything
  ) async throws -> PeerDifference {
    let comparison = DigestComparison(engine: engine, scope: scope)
    for _ in 0..<DigestComparison.attempts {
      if let found = try await comparison.compare(peer) { return found }
    }
    throw PeerError(.busy, "it is written to all the time; compare when it is quiet")
  }
}

private struct DigestComparison {
  static let attempts = 5
  /// The most keys kept in memory, 40 bytes each; in a store with more, differing parts are read
  /// again.
  private static let rowLimit = 8 << 20

  let engine: Engine
  let scope: SyncScope

  /// - Returns: nil if the peer was written to during the comparison.
  func compare(_ peer: any Peer) async throws -> PeerDifference? {
    let view = try engine.reader.view()
    var walk = DigestWalk()
    var table: DigestTable?
    var result = PeerDifference()
    while true {
      let paths = walk.next
      guard let first = paths.first else { break }
      let answer = try await peer.digest(
        DigestRequest(
          replica: ReplicaID(padding: engine.reader.replicaID), scope: scope, paths: paths))
      do throws(FormatError) { try WireMessage.digestAnswer(answer).check() } catch {
        throw PeerError(error)
      }
      guard walk.position.map({ $0 == answer.position }) ?? true else { return nil }
      if table?.answers(first) != true {
        table = DigestTable(paths: paths, limit: Self.rowLimit)
        try table?.add(view) { scope.contains(key: $0, labels: $1) }
        table?.finish()
      }
      guard let here = table else { break }
      for found in try walk.take(answer, here, key: { try engine.reader.entry(at: $0.offset).key })
      {
        switch (found.local, found.remote) {
        case (nil, _): result.onlyThere.append(Key(found.key))
        case (_, nil): result.onlyHere.append(Key(found.key))
        default: result.different.append(Key(found.key))
        }
      }
    }
    result.comparisons = walk.comparisons
    result.onlyHere.sort()
    result.onlyThere.sort()
    result.different.sort()
    return result
  }
}
