internal import TidemarkEngine

/// Compares what two sides hold part by part, from the whole down to the keys of the parts that
/// differ. The caller asks the other side; the walk says for what.
package struct DigestWalk: Sendable {
  /// What one side has at a key, and the other has not.
  package struct Difference: Sendable, Hashable {
    package var key: [UInt8]
    /// Here; nil where the key is absent.
    package var local: ContentFingerprint?
    /// There; nil where the key is absent.
    package var remote: ContentFingerprint?
  }

  /// Parts to be asked for, the next one at the end.
  private var parts: [[UInt8]] = [[]]
  /// How many parts were compared.
  package private(set) var comparisons = 0
  /// Where the feed stood at the first comparison: nothing after it was compared.
  package private(set) var position: Position?

  package init() {}

  /// The next part to be asked for; nil at the end.
  package var next: [UInt8]? { parts.last }

  /// Takes the other side's answer about ``next``.
  /// - Parameters:
  ///   - answer: what the other side holds of that part.
  ///   - table: can tell of the part.
  ///   - key: the key of a row of the table.
  /// - Returns: the keys that differ, as far as the answer came down to them.
  /// - Throws: ``PeerError`` for an answer that makes no sense; what `key` throws.
  package mutating func take(
    _ answer: DigestAnswer, _ table: DigestTable,
    key: (DigestTable.Row) throws -> [UInt8]?
  ) throws -> [Difference] {
    guard let path = parts.last else { return [] }
    comparisons += 1
    position = position ?? answer.position
    let sums = table.sums(of: path)
    if answer.total == sums.reduce(DigestSum(), +) {
      parts.removeLast()
      return []
    }
    switch answer.parts {
    case .sums(let theirs):
      guard theirs.count == sums.count, path.count < DigestTable.pathBytes else {
        throw PeerError(.malformed, "\(theirs.count) parts of part \(Hex.text(path))")
      }
      parts.removeLast()
      parts += sums.indices.reversed().filter { sums[$0] != theirs[$0] }.map {
        path + [UInt8($0)]
      }
      return []
    case .keys(let keys):
      guard table.isComplete else {
        // There they are few, and here more than fit into memory.
        parts.removeLast()
        parts += (0...255).reversed().map { path + [UInt8($0)] }
        return []
      }
      parts.removeLast()
      return try Self.differences(keys, table, path, key: key)
    }
  }

  private static func differences(
    _ keys: [DigestKey], _ table: DigestTable, _ path: [UInt8],
    key: (DigestTable.Row) throws -> [UInt8]?
  ) throws -> [Difference] {
    var theirs: [[UInt8]: ContentFingerprint] = [:]
    for key in keys {
      guard table.covers(hash: ContentFingerprint.keyHash(key.key.rawSpan)) else {
        throw PeerError(.malformed, "a key that is not in part \(Hex.text(path))")
      }
      theirs[key.key] = ContentFingerprint(low: key.low, high: key.high)
    }
    var differences: [Difference] = []
    for row in table.rows(of: path) {
      guard let key = try key(row) else { continue }
      let remote = theirs.removeValue(forKey: key)
      if remote != row.fingerprint {
        differences.append(Difference(key: key, local: row.fingerprint, remote: remote))
      }
    }
    differences += theirs.map { Difference(key: $0.key, local: nil, remote: $0.value) }
    return differences.sorted { $0.key.lexicographicallyPrecedes($1.key) }
  }
}
