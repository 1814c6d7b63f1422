/// The content of a touch, an entry that says that a key's value is still valid: whose value it
/// renews, and what it and the touches before it have renewed.
///
/// A touch that leaves the validity or the hash as it is repeats what an earlier one gave, so
/// that the newest touch and the put tell all, and compaction may drop those in between.
struct Touch: Sendable {
  /// The sequence of the put that holds the value.
  var valueSequence: UInt64
  var maxAge: UInt32?
  /// The validator hash that the caller gave, opaque to the store.
  var hash: [UInt8]?
  /// What ``renew(by:)`` has returned for the newest touch.
  var encoded: [UInt8]?

  /// Takes over what a new touch gives.
  /// - Returns: the touch's attributes, completed with the earlier validity and hash; nil when
  ///   those that were given are complete.
  mutating func renew(by bytes: RawSpan) throws(IndexOrStoreError) -> [UInt8]? {
    var attributes: EntryAttributes
    do {
      attributes = bytes.isEmpty ? EntryAttributes() : try EntryAttributes(decoding: bytes)
    } catch {
      throw .store(TidemarkError(.invalidArgument, error.reason, cause: error))
    }
    let isWhole =
      (attributes.maxAge != nil || maxAge == nil) && (attributes.hash != nil || hash == nil)
    attributes.maxAge = attributes.maxAge ?? maxAge
    attributes.hash = attributes.hash ?? hash
    (maxAge, hash) = (attributes.maxAge, attributes.hash)
    guard !isWhole else { return nil }
    var writer = ByteWriter()
    attributes.encode(into: &writer)
    return writer.bytes
  }
}
