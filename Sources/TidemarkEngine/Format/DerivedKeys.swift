/// Keys of rows that the library derives from other entries, such as those of the indexes of
/// collections.
///
/// They are cached entries, so that none takes part in replication and older versions of them are
/// not kept. Scans that do not ask for them by their prefix, counts, and readers of the log pass
/// over them: they say nothing that the entries do not say from which they are derived.
package enum DerivedKeys {
  /// The first bytes of them all.
  package static let prefix = Array("\0tidemark/#".utf8)

  /// Whether a key is one of them.
  @inline(__always)
  package static func contains(_ key: RawSpan) -> Bool {
    // Hardly any key begins with a zero, so one look suffices.
    key.byteCount > 0 && key.byte(0) == 0 && holdsPrefix(key)
  }

  private static func holdsPrefix(_ key: RawSpan) -> Bool {
    key.byteCount >= prefix.count
      && key.extracting(first: prefix.count).isEqual(to: prefix.rawSpan)
  }
}
