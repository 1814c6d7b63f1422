internal import TidemarkEngine

/// The keys that are the library's own: programs read them as any other, and cannot write them.
///
/// ```
/// \0tidemark/staged/KEY         an item of a collection that was fetched, until the switch
/// \0tidemark/collection/PREFIX  the generation that the cache of a prefix shows
/// ```
/// All of them are cached entries, so that none takes part in replication.
package enum ReservedKeys {
  package static let prefix = Array("\0tidemark/".utf8)
  /// The prefix of items that wait for the switch; the key that they will have follows.
  package static let staged = Array("\0tidemark/staged/".utf8)

  /// The key of the facts about a cache's collection.
  package static func collection(_ prefix: [UInt8]) -> [UInt8] {
    Array("\0tidemark/collection/".utf8) + prefix
  }

  package static func contains(_ key: RawSpan) -> Bool {
    // Hardly any key begins with a zero, so one look suffices.
    guard key.byteCount > 0, key.byte(0) == 0, key.byteCount >= prefix.count else { return false }
    return key.extracting(first: prefix.count).isEqual(to: prefix.rawSpan)
  }

  /// - Throws: `invalidArgument` for a prefix that some or all of the library's keys begin with.
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
