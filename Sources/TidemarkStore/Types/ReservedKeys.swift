internal import TidemarkEngine

/// The keys that are the library's own: programs can read them, but not write them.
///
/// A cache may equal a server's collection. Items of the collection's next generation are put under
/// `staged` keys as they are fetched; then one batch, the switch, moves all to their own keys.
/// ```
/// \0tidemark/staged/KEY         an item that was fetched and waits for the switch
/// \0tidemark/collection/PREFIX  the generation that the cache with a prefix has now
/// ```
/// All of these are cached entries, so that none takes part in replication.
package enum ReservedKeys {
  package static let prefix = Array("\0tidemark/".utf8)
  /// The prefix of items that wait for the switch; each item's later key follows it.
  package static let staged = Array("\0tidemark/staged/".utf8)

  /// The key with the generation of a cache's collection.
  package static func collection(_ prefix: [UInt8]) -> [UInt8] {
    Array("\0tidemark/collection/".utf8) + prefix
  }

  package static func contains(_ key: RawSpan) -> Bool {
    // Hardly any key begins with a zero byte, so most calls end here.
    key.byteCount > 0 && key.byte(0) == 0 && key.hasPrefix(prefix.rawSpan)
  }

  /// - Throws: `invalidArgument` for a prefix within the library's keys (`\0tidemark/x`) or above
  ///   them (`\0tide`). The empty one passes, since the caller refuses it by an error of its own.
  package static func refuse(prefix: [UInt8]) throws(TidemarkError) {
    try refuse(prefix.rawSpan)
    guard prefix.isEmpty || !self.prefix.starts(with: prefix) else {
      throw TidemarkError(
        .invalidArgument,
        "keys that begin with \\0tidemark/ are the library's, and such a prefix takes them in; "
          + "take another")
    }
  }

  /// - Throws: `invalidArgument` for a key that is the library's.
  package static func refuse(_ key: RawSpan) throws(TidemarkError) {
    guard !contains(key) else {
      throw TidemarkError(
        .invalidArgument, "keys that begin with \\0tidemark/ are the library's; take another")
    }
  }
}
