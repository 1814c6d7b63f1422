internal import TidemarkEngine

/// The comparison by digest, as in a Merkle tree: of the sums of the whole, then of the 256 parts
/// of each part that differs, down to keys. The caller makes the calls that the walk wants.
package struct DigestWalk: Sendable {
  /// A key that the two sides do not hold with the same content.
  package struct Difference: Sendable, Hashable {
    package var key: [UInt8]
    /// This side's; nil where the key is absent.
    package var local: ContentFingerprint?
    /// The other side's; nil where the key is absent.
    package var remote: ContentFingerprint?
  }

  /// Most parts of one request.
  private static let partsPerCall = 1_024
  /// About how many parts are kept in `parts`: each that is requested may add 256.
  private static let mostParts = 1 << 18

  /// The paths of parts still to be requested, in reverse order.
  private var parts: [[UInt8]] = [[]]
  /// How many parts were compared.
  package private(set) var comparisons = 0
  /// The feed's position in the first answer, as of which the sides are compared.
  package private(set) var position: FeedPosition?

  package init() {}

  /// How many parts are known that are still to be requested.
  package var partsLeft: Int { parts.count }

  /// The paths of the next request; empty when the comparison is done.
  package var next: [[UInt8]] {
    let room = (Self.mostParts - parts.count) / 256
    return parts.suffix(max(1, min(room, Self.partsPerCall))).reversed()
  }

  /// Compares the other side's answer for ``next``, or for the first of its paths.
  /// - Parameters:
  ///   - answer: the other side's sums or keys of those parts.
  ///   - table: this side's. Parts that it cannot answer are requested again; it must the first.
  ///   - key: reads the key of a row of the table; nil leaves the row out.
  /// - Returns: the keys that differ in the parts that were answered with keys.
  /// - Throws: ``PeerError`` for an invalid answer; what `key` throws.
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
          // The other side has few keys, and this one more than fit in memory: compare by parts.
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
      theirs[key.key] = ContentFingerprint(bits: key.fingerprint)
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
