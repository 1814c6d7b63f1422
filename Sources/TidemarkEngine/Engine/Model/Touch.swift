/// The content of a touch: an entry that renews the validity of a key's value without writing the
/// value again. It has the sequence of the put, and what it and earlier touches have renewed.
///
/// A touch that gives no validity, or no hash, repeats the one of the touch before. So the newest
/// touch and its put tell everything, and compaction may drop the touches in between.
struct Touch: Sendable {
  /// The sequence of the put that holds the value.
  var valueSequence: UInt64
  /// Seconds for which the value counts as valid; nil where no touch has said.
  var maxAge: UInt32?
  /// The validator hash that the caller gave, opaque to the store.
  var hash: [UInt8]?
  /// The attributes to write for this touch; nil if those of the caller are complete.
  var encoded: [UInt8]?

  /// Merges the attributes of a newer touch into this content.
  /// - Returns: the attributes, completed with the earlier validity and hash; nil if complete.
  mutating func renew(by bytes: RawSpan) throws(IndexOrStoreError) -> [UInt8]? {
    var attributes: EntryAttributes
    do {
      attributes = bytes.isEmpty ? EntryAttributes() : try EntryAttributes(decoding: bytes)
    } catch { throw .store(TidemarkError(.invalidArgument, error.reason, cause: error)) }
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
