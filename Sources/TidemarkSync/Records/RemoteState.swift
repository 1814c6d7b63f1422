internal import Tidemark
internal import TidemarkEngine
internal import TidemarkSyncProtocol

/// The feed's version of a key whose local value is another: a record in the log, so that the
/// resolver and the user have both, and the next push states this version as its base.
@dynamicMemberLookup
struct RemoteState: Sendable, Hashable {
  /// The feed's entry without its key; a put or a delete.
  private var entry: FeedEntry
  /// How many times in a row the resolver has decided on the key.
  var rounds: Int

  init(_ entry: FeedEntry, rounds: Int = 0) {
    self.entry = entry
    self.entry.key = []
    self.entry.kind = entry.kind == .put ? .put : .delete
    self.rounds = rounds
  }

  subscript<Value>(dynamicMember path: WritableKeyPath<FeedEntry, Value>) -> Value {
    get { entry[keyPath: path] }
    set { entry[keyPath: path] = newValue }
  }

  var isDeleted: Bool { entry.kind == .delete }

  /// The commit time, or the feed's if the writer's clock was ahead; nil if the peer gives none.
  var orderedTime: Timestamp? {
    let time = entry.received ?? entry.commitTime
    return time == 0 ? nil : HybridTime(time).orderedTimestamp
  }

  /// Whether the feed has no entry of the key, not even a delete.
  var isAbsent: Bool { isDeleted && entry.operation.replica == .none }

  /// Varint rounds; then the entry, as in a page.
  func encoded() throws(FormatError) -> [UInt8] {
    var writer = ByteWriter()
    writer.varint(rounds)
    return writer.bytes + (try entry.encoded())
  }

  init(decoding bytes: RawSpan) throws(FormatError) {
    var reader = ByteReader(bytes)
    let rounds = try reader.varint(atMost: 1 << 20)
    let entry = try FeedEntry(decoding: bytes.extracting(reader.offset..<bytes.byteCount))
    guard entry.kind == .put || entry.kind == .delete, entry.content.blob == nil else {
      throw FormatError("a remote state that is no put or delete")
    }
    self.init(entry, rounds: rounds)
  }
}
