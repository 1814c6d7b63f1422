internal import Tidemark
internal import TidemarkEngine
internal import TidemarkSyncProtocol

/// The `Idempotency-Key` by which a back end recognises a repeated change: a UUID of version 8.
///
/// ```
/// u48  the change's sequence
/// u4   8, the version
/// u12  the highest bits of the hash
/// u2   2, the variant
/// u38  the other bits of the hash
/// u24  salt: 0, or a hash of the position of the version that the change was made upon
/// ```
/// The hash is over the change's content and commit time, and over the store's id, which a copy and
/// a restored backup share, not over the replica id: so a change has one key wherever it is sent
/// from, and no other change has it.
struct IdempotencyKey: Sendable, Hashable {
  var sequence: UInt64
  var hash: UInt64
  var salt: UInt64 = 0

  private static let version: UInt64 = 8
  private static let variant: UInt64 = 2

  /// - Parameters:
  ///   - change: a change that the store's program made.
  ///   - store: the store's id.
  init(_ change: PushedChange, of store: [UInt8]) {
    var writer = ByteWriter(capacity: change.key.count + 96)
    writer.blob(store)
    writer.u64(change.sequence)
    writer.u64(change.commitTime)
    writer.u8(change.kind.rawValue)
    writer.blob(change.key)
    let labels = change.content.labelSet
    writer.varint(labels.count)
    for label in labels { writer.blob(label) }
    writer.blob(change.content.hash.map { [1] + $0 } ?? [])
    writer.u64(change.content.maxAgeSeconds.map { UInt64($0) + 1 } ?? 0)
    writer.text(change.content.attachment.map { "\($0)" } ?? "")
    writer.raw(SHA256.hash(change.content.value.rawSpan))
    var digest = SHA256.hash(writer.bytes.rawSpan)
    if PlantedSyncBug.isOn(.sequenceAsKey) { digest = SHA256.hash(store.rawSpan) }
    sequence = change.sequence & 0xffff_ffff_ffff
    hash = digest.prefix(8).reduce(0) { $0 << 8 | UInt64($1) } >> 14
  }

  /// The key of the same change when its base is another writer's version, after a conflict. It
  /// must differ, since a back end repeats its answer to a known key, which was the conflict.
  func salted(by base: UInt64) -> IdempotencyKey {
    var key = self
    var writer = ByteWriter()
    writer.u64(base)
    key.salt = max(1, XXH64.hash(writer.bytes.rawSpan, seed: hash) >> 40)
    return key
  }

  /// A hash of an operation id, by which retries of different changes are spread.
  static func hash(of operation: OperationID) -> UInt64 {
    XXH64.hash(operation.replica.bytes.rawSpan, seed: operation.sequence)
  }

  /// The canonical text, in lower case.
  var text: String {
    let high = sequence << 16 | Self.version << 12 | hash >> 38
    let low = Self.variant << 62 | (hash & (1 << 38 - 1)) << 24 | salt
    var writer = ByteWriter()
    for word in [high, low] { writer.u64(word.byteSwapped) }
    let digits = Hex.text(writer.bytes)
    var text = ""
    for (index, digit) in digits.enumerated() {
      if [8, 12, 16, 20].contains(index) { text.append("-") }
      text.append(digit)
    }
    return text
  }

  /// Parses a key, also in upper case, as some back ends return UUIDs.
  /// - Returns: nil for any other text.
  init?(_ text: String) {
    guard text.utf8.count == 36 else { return nil }
    let parts = text.utf8.split(separator: UInt8(ascii: "-"), omittingEmptySubsequences: false)
    guard parts.map(\.count) == [8, 4, 4, 4, 12] else { return nil }
    var words: [UInt64] = [0, 0]
    for (index, digit) in parts.joined().enumerated() {
      guard let value = Hex.value(digit < 0x40 ? digit : digit | 0x20) else { return nil }
      words[index / 16] = words[index / 16] << 4 | UInt64(value)
    }
    guard words[0] >> 12 & 0xf == Self.version, words[1] >> 62 == Self.variant else { return nil }
    sequence = words[0] >> 16
    hash = (words[0] & 0xfff) << 38 | words[1] >> 24 & (1 << 38 - 1)
    salt = words[1] & 0xff_ffff
  }
}
