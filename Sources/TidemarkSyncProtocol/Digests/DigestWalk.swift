internal import TidemarkEngine

/// Compares what two sides hold part by part, from the whole down to the keys of the parts that
/// differ. The caller asks the other side; the walk says for what.
package struct DigestWalk: Sendable {
  /// A version that one side has at a key, and the other has not.
  package struct Difference: Sendable, Hashable {
    package var key: [UInt8]
    /// Here; nil where the key is absent.
    package var local: ContentFingerprint?
    /// There; nil where the key is absent.
    package var remote: ContentFingerprint?
  }

  /// So many parts are asked for at once.
  private static let partsPerCall = 1_024
  /// So many are remembered: of each that is asked for there may be 256 more.
  private static let mostParts = 1 << 18

  /// Parts to be asked for, in order, the next one at the end.
  private var parts: [[UInt8]] = [[]]
  /// How many parts were compared.
  package private(set) var comparisons = 0
  /// Where the feed stood at the first comparison: nothing after it was compared.
  package private(set) var position: Position?

  package init() {}

  /// How many parts are known that are to be asked for.
  package var partsLeft: Int { parts.count }

  /// The next parts to be asked for; empty at the end.
  package var next: [[UInt8]] {
    let room = (Self.mostParts - parts.count) / 256
    return parts.suffix(max(1, min(room, Self.partsPerCall))).reversed()
  }

  /// Takes the other side's answer about ``next``, or the first of them.
  /// - Parameters:
  ///   - answer: what the other side holds of those parts.
  ///   - table: can tell of the first part. Those of which it cannot are asked for again.
  ///   - key: the key of a row of the table.
  /// - Returns: the keys that differ, as far as the answer came down to them.
  /// - Throws: ``PeerError`` for an answer that makes no sense; what `key` throws.
  package mutating func take(
    _ answer: DigestAnswer, _ table: DigestTable,
    key: (DigestTable.Row) throws -> [UInt8]?
  ) throws -> [Difference] {
    let asked = next
    guard answer.parts.count <= asked.count else {
      throw PeerError(.malformed, "a digest of more parts than were asked for")
    }
    position = position ?? answer.position
    var differences: [Difference] = []
    var children: [[UInt8]] = []
    var count = 0
    for (path, part) in zip(asked, answer.parts) {
      guard table.answers(path) else { break }
      count += 1
      let sums = table.sums(of: path)
      if part.total == sums.reduce(DigestSum(), +) { continue }
      switch part.content {
      case .sums(let theirs):
        guard theirs.count == sums.count, path.count < DigestTable.pathBytes else {
          throw PeerError(.malformed, "\(theirs.count) parts of part \(Hex.text(path))")
        }
        children += sums.indices.filter { sums[$0] != theirs[$0] }.map { path + [UInt8($0)] }
      case .keys(let keys):
        if table.isComplete {
          differences += try Self.differences(keys, table, path, key: key)
        } else {
          // There they are few, and here more than fit into memory.
          children += (0...255).map { path + [UInt8($0)] }
        }
      }
    }
    comparisons += count
    parts.removeLast(count)
    parts += children.reversed()
    return differences
  }

  private static func differences(
    _ keys: [DigestKey], _ table: DigestTable, _ path: [UInt8],
    key: (DigestTable.Row) throws -> [UInt8]?
  ) throws -> [Difference] {
    var theirs: [[UInt8]: ContentFingerprint] = [:]
    for key in keys {
      guard DigestTable.part(path, has: ContentFingerprint.keyHash(key.key.rawSpan)) else {
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
