public import Tidemark

/// Decides which entries a replicator pushes and pulls: entries with any of the labels, and entries
/// whose key begins with any of the prefixes. Without labels and prefixes it contains every entry.
public struct SyncScope: Sendable, Hashable {
  /// An entry with at least one of these labels is in the scope.
  public var labels: [EntryLabel] { didSet { update() } }
  /// An entry whose key begins with one of these prefixes is in the scope.
  public var keyPrefixes: [Key] {
    get { prefixBytes.map { Key($0) } }
    set { prefixBytes = newValue.map(\.bytes) }
  }
  /// The prefixes' bytes.
  package var prefixBytes: [[UInt8]] { didSet { update() } }
  /// Labels and prefixes, for binary search.
  private var matcher: ScopeMatcher

  /// Creates a scope; it contains every entry if both lists are empty.
  ///
  /// ```swift
  /// let scope = SyncScope(labels: ["shared"], keyPrefixes: ["note/", "task/\(project)/"])
  /// ```
  /// - Parameters:
  ///   - labels: an entry with one of these labels is in the scope.
  ///   - keyPrefixes: an entry whose key begins with one of these prefixes is in the scope. A
  ///     prefix is text, bytes or a key.
  public init(labels: [EntryLabel] = [], keyPrefixes: [any BytesConvertible] = []) {
    self.init(labels: labels, prefixBytes: keyPrefixes.map { Key($0).bytes })
  }

  package init(labels: [EntryLabel] = [], prefixBytes: [[UInt8]]) {
    self.labels = labels
    self.prefixBytes = prefixBytes
    matcher = ScopeMatcher(labels: labels, prefixes: prefixBytes)
  }

  private mutating func update() { matcher = ScopeMatcher(labels: labels, prefixes: prefixBytes) }

  /// The scope that contains every entry; the default of a replicator.
  public static let everything = SyncScope()

  /// Whether the scope contains every entry: it has no labels and no prefixes.
  public var isEverything: Bool { labels.isEmpty && prefixBytes.isEmpty }

  /// Whether an entry with this key and these labels is in the scope. The cost is that of a lookup,
  /// whatever the number of labels and prefixes in the scope.
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
