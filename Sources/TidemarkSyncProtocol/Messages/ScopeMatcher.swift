internal import Tidemark
internal import TidemarkEngine

/// Matches entries against the labels and prefixes of a scope by binary search: a scope may have
/// thousands of them, and is matched against every entry of a feed.
struct ScopeMatcher: Sendable, Hashable {
  /// In byte order.
  private let labels: [[UInt8]]
  /// In byte order, and none begins with another. So a key can only begin with the last one that is
  /// not greater than it.
  private let prefixes: [[UInt8]]

  init(labels: [EntryLabel], prefixes: [[UInt8]]) {
    self.labels = Self.sorted(labels.map(\.bytes))
    var kept: [[UInt8]] = []
    for prefix in Self.sorted(prefixes) {
      if let last = kept.last, prefix.starts(with: last) { continue }
      kept.append(prefix)
    }
    self.prefixes = kept
  }

  /// Whether a key begins with one of the prefixes, or has one of the labels.
  package func contains(key: [UInt8], labels: some Sequence<[UInt8]>) -> Bool {
    if let prefix = Self.last(of: prefixes, notAfter: key), key.starts(with: prefix) { return true }
    if self.labels.isEmpty { return false }
    return labels.contains { Self.last(of: self.labels, notAfter: $0) == $0 }
  }

  /// Sorts, unless the rows are sorted already, as those from a message are.
  private static func sorted(_ rows: [[UInt8]]) -> [[UInt8]] {
    let isSorted = zip(rows, rows.dropFirst()).allSatisfy {
      $0.rawSpan.compare(to: $1.rawSpan) <= 0
    }
    return isSorted ? rows : rows.sorted { $0.rawSpan.compare(to: $1.rawSpan) < 0 }
  }

  private static func last(of rows: [[UInt8]], notAfter key: [UInt8]) -> [UInt8]? {
    let end = rows.partitioningIndex { $0.rawSpan.compare(to: key.rawSpan) > 0 }
    return end > 0 ? rows[end - 1] : nil
  }
}
