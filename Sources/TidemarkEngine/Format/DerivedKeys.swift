/// Keys of rows that the library derives from other entries, such as rows of collections' indexes.
///
/// These entries are cached ones, so that none is replicated and no older versions are kept. Scans
/// that do not ask for their prefix, counts and readers of the log pass over them.
package enum DerivedKeys {
  /// The first bytes of every derived key; users cannot write keys that begin so.
  package static let prefix = Array("\0tidemark/#".utf8)

  /// Whether a key is one of them.
  @inline(__always)
  package static func contains(_ key: RawSpan) -> Bool {
    // Hardly any key begins with a zero, so one look suffices.
    key.byteCount > 0 && key.byte(0) == 0 && holdsPrefix(key)
  }

  private static func holdsPrefix(_ key: RawSpan) -> Bool {
    key.byteCount >= prefix.count && key.extracting(first: prefix.count).isEqual(to: prefix.rawSpan)
  }
}
