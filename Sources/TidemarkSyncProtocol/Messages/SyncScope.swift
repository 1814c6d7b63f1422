public import Tidemark

/// Which entries a replicator pushes and pulls: those with any of the labels, or whose key begins
/// with any of the prefixes.
public struct SyncScope: Sendable, Hashable {
  /// An entry with one of these is within.
  public var labels: [EntryLabel] { didSet { update() } }
  /// An entry whose key begins with one of these is within.
  public var keyPrefixes: [Key] {
    get { prefixBytes.map { Key($0) } }
    set { prefixBytes = newValue.map(\.bytes) }
  }
  /// The prefixes' bytes.
  package var prefixBytes: [[UInt8]] { didSet { update() } }
  /// Labels and prefixes, for binary search.
  private var matcher: ScopeMatcher

  /// A scope; everything when both are empty.
  ///
  /// ```swift
  /// let scope = SyncScope(labels: ["shared"], keyPrefixes: ["note/", "task/\(project)/"])
  /// ```
  /// - Parameters:
  ///   - labels: an entry with one of these is within.
  ///   - keyPrefixes: an entry whose key begins with one of these is within: text, bytes, keys.
  public init(labels: [EntryLabel] = [], keyPrefixes: [any BytesConvertible] = []) {
    self.init(labels: labels, prefixBytes: keyPrefixes.map { Key($0).bytes })
  }

  package init(labels: [EntryLabel] = [], prefixBytes: [[UInt8]]) {
    self.labels = labels
    self.prefixBytes = prefixBytes
    matcher = ScopeMatcher(labels: labels, prefixes: prefixBytes)
  }

  private mutating func update() { matcher = ScopeMatcher(labels: labels, prefixes: prefixBytes) }

  /// All entries.
  public static let everything = SyncScope()

  /// Whether all entries are within.
  public var isEverything: Bool { labels.isEmpty && prefixBytes.isEmpty }

  /// Whether an entry is within; a lookup, however many labels and prefixes the scope has.
  public func contains(key: some BytesConvertible, labels: [EntryLabel]) -> Bool {
    contains(key: Key(key).bytes, labels: labels)
  }

  package func contains(key: [UInt8], labels: [EntryLabel]) -> Bool {
    isEverything || matcher.contains(key: key, labels: labels.lazy.map(\.bytes))
  }

  package func contains(key: [UInt8], labels: [[UInt8]]) -> Bool {
    isEverything || matcher.contains(key: key, labels: labels)
  }
}

extension SyncScope {
  /// Labels and prefixes, sorted and without repetitions: equal for equal scopes.
  package var canonicalBytes: [UInt8] {
    var writer = ByteWriter()
    for part in [labels.map(\.bytes), prefixBytes] {
      let once = Set(part)
      writer.varint(once.count)
      for bytes in once.sorted(by: { $0.lexicographicallyPrecedes($1) }) {
        writer.blob(bytes)
      }
    }
    return writer.bytes
  }

  /// A hash of ``canonicalBytes``.
  package func hash(seed: UInt64) -> UInt64 { XXH64.hash(canonicalBytes.rawSpan, seed: seed) }
}
