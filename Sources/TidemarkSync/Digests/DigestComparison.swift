internal import Tidemark
package import TidemarkEngine

/// Compares what a store holds with what a peer holds, by sums: of what is the same nothing but
/// sums is told, and only parts that differ are looked into.
package struct DigestComparison {
  /// What was found.
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
  private static let rowsPerPage = 1024

  private let engine: Engine
  private let scope: SyncScope
  private let replica: ReplicaID
  private let rowLimit: Int
  private var table: DigestTable?
  private var view: EngineView?
  private var position: Position?
  private var result = Result()

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
  package mutating func run(_ peer: any Peer) async throws -> Result {
    for _ in 0..<Self.attempts {
      (table, view, position, result) = (nil, try engine.view(), nil, Result())
      do {
        try await compare([], peer)
        result.onlyHere.sort { $0.lexicographicallyPrecedes($1) }
        result.onlyThere.sort { $0.lexicographicallyPrecedes($1) }
        result.different.sort { $0.lexicographicallyPrecedes($1) }
        return result
      } catch is Changed { continue }
    }
    throw PeerError(.busy, "it is written to all the time; compare when it is quiet")
  }

  private mutating func compare(_ path: [UInt8], _ peer: any Peer) async throws {
    result.comparisons += 1
    let answer = try await peer.digest(
      DigestRequest(replica: replica, scope: scope, path: path))
    guard position == nil || position == answer.position else { throw Changed() }
    position = answer.position
    let (total, part) = try part(path)
    guard total != answer.total else { return }
    switch (part, answer.parts) {
    case (.sums(let here), .sums(let there)):
      guard here.count == there.count else {
        throw PeerError(.malformed, "a digest has \(there.count) parts")
      }
      // A part whose sum is known to differ need not be compared once more, but looked into.
      for index in here.indices where here[index] != there[index] {
        try await descend(path + [UInt8(index)], peer)
      }
    case (.rows, .sums(let there)):
      // Few here, many there.
      for index in there.indices where there[index].keys > 0 {
        try await descend(path + [UInt8(index)], peer)
      }
      try addMissing(path, there)
    case (_, .keys(let there)): try compareKeys(path, there)
    }
  }

  private mutating func descend(_ path: [UInt8], _ peer: any Peer) async throws {
    guard path.count <= DigestTable.pathBytes else {
      throw PeerError(.malformed, "a digest that goes too deep")
    }
    try await compare(path, peer)
  }

  /// Keys here in parts of which the peer has none.
  private mutating func addMissing(_ path: [UInt8], _ there: [DigestSum]) throws {
    for row in try rows(path) {
      let next = Int(row.hash >> UInt64(56 - 8 * min(path.count, 7)) & 0xff)
      if next < there.count, there[next].keys == 0 { result.onlyHere.append(try key(row)) }
    }
  }

  private mutating func compareKeys(_ path: [UInt8], _ there: [DigestKey]) throws {
    var here: [[UInt8]: ContentFingerprint] = [:]
    for row in try rows(path) { here[try key(row)] = row.fingerprint }
    for found in there {
      guard let fingerprint = here.removeValue(forKey: found.key) else {
        result.onlyThere.append(found.key)
        continue
      }
      if fingerprint != ContentFingerprint(low: found.low, high: found.high) {
        result.different.append(found.key)
      }
    }
    result.onlyHere += here.keys
  }

  // MARK: What is here

  private func key(_ row: DigestTable.Row) throws(TidemarkError) -> [UInt8] {
    try engine.entry(at: row.offset).key
  }

  private mutating func part(_ path: [UInt8]) throws -> (DigestSum, DigestTable.Part) {
    try gather(path).part(path)
  }

  /// All rows of a part, however many.
  private mutating func rows(_ path: [UInt8]) throws -> [DigestTable.Row] {
    switch try part(path).1 {
    case .rows(let rows): return Array(rows)
    case .sums(let sums):
      var rows: [DigestTable.Row] = []
      for index in sums.indices where sums[index].keys > 0 {
        rows += try self.rows(path + [UInt8(index)])
      }
      return rows
    }
  }

  private mutating func gather(_ path: [UInt8]) throws -> DigestTable {
    if let table, table.answers(path) { return table }
    var table = DigestTable(path: path, limit: rowLimit)
    let scan = EngineScan(engine, ScanQuery(), view: try view ?? engine.view())
    while true {
      let rows = try scan.nextPage(limit: Self.rowsPerPage)
      if rows.isEmpty { break }
      for row in rows {
        let hash = ContentFingerprint.keyHash(row.key.rawSpan)
        guard table.covers(hash: hash) else { continue }
        let info = try engine.info(try engine.entry(at: row.sequence))
        guard info.attributes.entryClass == .owned,
          scope.contains(key: row.key, labels: info.labels.map { Label($0) })
        else { continue }
        let fingerprint = try engine.withValue(of: info.valueSequence) {
          (value, _) throws(TidemarkError) in
          ContentFingerprint(key: row.key.rawSpan, value: value, labels: info.labels)
        }
        table.add(
          DigestTable.Row(hash: hash, fingerprint: fingerprint, offset: info.valueSequence))
      }
    }
    table.finish()
    self.table = table
    return table
  }
}
