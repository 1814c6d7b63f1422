public import Tidemark

/// Which entries a replicator sends and takes: those with any of the labels, or whose key begins
/// with any of the prefixes.
public struct SyncScope: Sendable, Hashable {
  /// An entry with one of these is within.
  public var labels: [EntryLabel]
  /// An entry whose key begins with one of these is within.
  public var keyPrefixes: [[UInt8]]

  /// A scope; everything when both are empty.
  public init(labels: [EntryLabel] = [], keyPrefixes: [[UInt8]] = []) {
    self.labels = labels
    self.keyPrefixes = keyPrefixes
  }

  /// All entries.
  public static let everything = SyncScope()

  /// Whether all entries are within.
  public var isEverything: Bool { labels.isEmpty && keyPrefixes.isEmpty }

  /// Whether an entry is within.
  public func contains(key: [UInt8], labels: [EntryLabel]) -> Bool {
    isEverything || labels.contains { self.labels.contains($0) }
      || keyPrefixes.contains { key.starts(with: $0) }
  }
}
