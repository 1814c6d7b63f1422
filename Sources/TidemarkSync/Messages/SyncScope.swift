public import Tidemark

/// Which entries a replicator sends and takes: those with any of the labels, or whose key begins
/// with any of the prefixes.
public struct SyncScope: Sendable, Hashable {
  /// An entry with one of these is within.
  public var labels: [EntryLabel] { didSet { matcher = Self.matcher(labels, keyPrefixes) } }
  /// An entry whose key begins with one of these is within.
  public var keyPrefixes: [[UInt8]] { didSet { matcher = Self.matcher(labels, keyPrefixes) } }
  /// The same two, for looking up.
  private var matcher: ScopeMatcher

  /// A scope; everything when both are empty.
  public init(labels: [EntryLabel] = [], keyPrefixes: [[UInt8]] = []) {
    self.labels = labels
    self.keyPrefixes = keyPrefixes
    matcher = Self.matcher(labels, keyPrefixes)
  }

  private static func matcher(_ labels: [EntryLabel], _ prefixes: [[UInt8]]) -> ScopeMatcher {
    ScopeMatcher(labels: labels, prefixes: prefixes)
  }

  /// All entries.
  public static let everything = SyncScope()

  /// Whether all entries are within.
  public var isEverything: Bool { labels.isEmpty && keyPrefixes.isEmpty }

  /// Whether an entry is within; a lookup, however many labels and prefixes the scope has.
  public func contains(key: [UInt8], labels: [EntryLabel]) -> Bool {
    isEverything || matcher.contains(key: key, labels: labels.lazy.map(\.bytes))
  }

  func contains(key: [UInt8], labels: [[UInt8]]) -> Bool {
    isEverything || matcher.contains(key: key, labels: labels)
  }

  public static func == (a: SyncScope, b: SyncScope) -> Bool {
    a.labels == b.labels && a.keyPrefixes == b.keyPrefixes
  }

  public func hash(into hasher: inout Hasher) {
    hasher.combine(labels)
    hasher.combine(keyPrefixes)
  }
}
