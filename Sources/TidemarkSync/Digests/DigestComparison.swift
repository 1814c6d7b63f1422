internal import Tidemark
package import TidemarkEngine
internal import TidemarkSyncProtocol

/// Compares what a store holds with what a peer holds, by sums: of what is the same nothing but
/// sums is told, and only parts that differ are looked into.
package struct DigestComparison {
  /// The differences that were found.
  package struct Result: Sendable {
    /// How many sums of parts were compared; one when all is the same.
    package var comparisons = 0
    /// Keys, in byte order.
    package var onlyHere: [[UInt8]] = []
    package var onlyThere: [[UInt8]] = []
    package var different: [[UInt8]] = []

    package var isEqual: Bool { onlyHere.isEmpty && onlyThere.isEmpty && different.isEmpty }
  }

  /// The store or the peer was written to meanwhile.
  private struct Changed: Error {}

  private static let attempts = 5

  private let engine: Engine
  private let scope: SyncScope
  private let replica: ReplicaID
  private let rowLimit: Int
  /// - Parameter rowLimit: so many keys are kept in memory, 40 bytes each; of a store that has
  ///   more, parts that differ are read again.
  package init(_ engine: Engine, scope: SyncScope = .everything, rowLimit: Int = 8 << 20) {
    self.engine = engine
    self.scope = scope
    self.rowLimit = rowLimit
    replica = ReplicaID(padding: engine.replicaID)
  }

  /// Compares.
  /// - Throws: ``PeerError``, also `busy` when the peer is written to all the time; what reading
  ///   the store throws.
  package func run(_ peer: any Peer) async throws -> Result {
    for _ in 0..<Self.attempts {
      do { return try await compare(peer) } catch is Changed { continue }
    }
    throw PeerError(.busy, "it is written to all the time; compare when it is quiet")
  }

  private func compare(_ peer: any Peer) async throws -> Result {
    let view = try engine.view()
    var walk = DigestWalk()
    var table: DigestTable?
    var result = Result()
    while true {
      let paths = walk.next
      guard let first = paths.first else { break }
      let answer = try await peer.digest(
        DigestRequest(replica: replica, scope: scope, paths: paths))
      do throws(FormatError) { try WireMessage.digestAnswer(answer).check() } catch {
        throw PeerError(error)
      }
      guard walk.position.map({ $0 == answer.position }) ?? true else { throw Changed() }
      let here: DigestTable
      if let table, table.answers(first) { here = table } else { here = try gather(paths, view) }
      table = here
      for found in try walk.take(answer, here, key: { try engine.entry(at: $0.offset).key }) {
        switch (found.local, found.remote) {
        case (nil, _): result.onlyThere.append(found.key)
        case (_, nil): result.onlyHere.append(found.key)
        default: result.different.append(found.key)
        }
      }
    }
    result.comparisons = walk.comparisons
    result.onlyHere.sort { $0.lexicographicallyPrecedes($1) }
    result.onlyThere.sort { $0.lexicographicallyPrecedes($1) }
    result.different.sort { $0.lexicographicallyPrecedes($1) }
    return result
  }

  // MARK: What is here

  private func gather(_ paths: [[UInt8]], _ view: EngineView) throws -> DigestTable {
    var table = DigestTable(paths: paths, limit: rowLimit)
    let scan = EngineScan(engine, ScanQuery(), view: view)
    while true {
      let rows = try scan.nextPage(upTo: Engine.entriesTogether)
      if rows.isEmpty { break }
      let wanted = rows.filter { table.covers(hash: ContentFingerprint.keyHash($0.key.rawSpan)) }
      try engine.forEachInfo(of: wanted) { (index, info) throws(TidemarkError) in
        let key = wanted[index].key
        let hash = ContentFingerprint.keyHash(key.rawSpan)
        guard table.covers(hash: hash), info.attributes.entryClass == .owned,
          scope.contains(key: key, labels: info.labels.map { EntryLabel($0) })
        else { return }
        let fingerprint = try engine.withValue(of: info.valueSequence) {
          (value, _) throws(TidemarkError) in
          ContentFingerprint(
            key: key.rawSpan, value: value, labels: info.labels,
            attachment: info.attributes.attachment)
        }
        table.add(
          DigestTable.Row(hash: hash, fingerprint: fingerprint, offset: info.valueSequence))
      }
    }
    table.finish()
    return table
  }
}
