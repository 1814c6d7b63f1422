internal import Tidemark
internal import TidemarkEngine
internal import TidemarkSyncProtocol

/// The state that the feed holds at a key whose local value is another one: a record in the log, so
/// that both can be read and the next push says what it is based upon.
@dynamicMemberLookup
struct RemoteState: Sendable, Hashable {
  /// Without its key; a put or a delete.
  private var entry: FeedEntry
  /// How often the resolver has run on the key without an end.
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

  /// When it was committed, or the feed took it where that counts; nil when the peer does not say.
  var orderedTime: Timestamp? {
    let time = entry.received ?? entry.commitTime
    return time == 0 ? nil : HybridTime(time).orderedTimestamp
  }

  /// Whether the feed has nothing there, not even a delete.
  var isAbsent: Bool { isDeleted && entry.operation.replica == .none }

  /// - Throws: what is longer than it may be, since it comes from a peer.
  func encoded() throws(FormatError) -> [UInt8] {
    var (state, record) = (self, FrameCursor(writing: 128 + entry.content.value.count))
    try state.code(&record)
    return record.out.bytes
  }
}

extension RemoteState: StoredRecord {
  init() { self.init(.blank) }

  mutating func code(_ record: inout FrameCursor) throws(FormatError) {
    try record.varint(&rounds, atMost: 1 << 20)
    var entry = entry
    try entry.code(&record)
    guard entry.kind == .put || entry.kind == .delete, entry.content.blob == nil else {
      throw FormatError("a version beside a key that is none")
    }
    self = RemoteState(entry, rounds: rounds)
  }
}
