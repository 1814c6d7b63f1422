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
}

extension RemoteState: StoredRecord {
  init() { self.init(.blank) }

  /// The record's fields: how often the resolver decided, and the entry as a pull's answer has it.
  mutating func code(_ record: inout FrameCursor) throws(FormatError) {
    try record.varint(&rounds, atMost: 1 << 20)
    var entry = entry
    try entry.code(&record)
    guard entry.kind == .put || entry.kind == .delete, entry.content.blob == nil else {
      throw FormatError("a remote state that is no put or delete")
    }
    self = RemoteState(entry, rounds: rounds)
  }
}
