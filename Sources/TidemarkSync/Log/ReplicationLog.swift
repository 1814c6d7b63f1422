internal import Tidemark
package import TidemarkEngine
internal import TidemarkSyncProtocol

/// A store's log as a session sees it: entries decoded for replication, and what else it reads and
/// writes in several places.
package struct ReplicationLog {
  let engine: Engine

  package init(_ engine: Engine) { self.engine = engine }

  var reader: Reader { engine.reader }

  // MARK: Entries

  /// The sequence of the last entry.
  package var head: UInt64 { engine.reader.lastSequence }

  /// The entry at a sequence; nil when compaction has dropped it.
  package func change(at sequence: UInt64) throws(TidemarkError) -> LoggedChange? {
    guard sequence > 0, let entry = try engine.reader.entryIfKept(at: sequence) else { return nil }
    return try LoggedChange(entry)
  }

  /// A key's newest change; for a touch, which only renews the expiry, the entry that it renews.
  package func newestChange(ofKey key: [UInt8]) throws(TidemarkError) -> LoggedChange? {
    guard let slot = try slot(ofKey: key) else { return nil }
    guard slot.size.isTouched else { return try change(at: slot.sequence) }
    return try change(at: try engine.reader.entry(at: slot.sequence).head.valueSequence)
  }

  /// A key's newest entry as in the index, which may be a touch.
  func slot(ofKey key: [UInt8]) throws(TidemarkError) -> Slot? {
    try engine.reader.slot(ofKey: key.rawSpan)
  }

  /// A key's versions after a sequence, the newest first.
  func versions(
    ofKey key: [UInt8], after sequence: UInt64
  ) throws(TidemarkError) -> [LoggedChange] {
    var (versions, next): ([LoggedChange], LoggedChange?) = ([], try newestChange(ofKey: key))
    while let version = next, version.sequence > sequence {
      versions.append(version)
      next = try change(at: version.previous)
    }
    return versions
  }

  package func content(of change: LoggedChange) throws(TidemarkError) -> SyncContent {
    try change.content(change.kind == .put ? withValue(of: change) { [UInt8](copying: $0) } : [])
  }

  func withValue<R>(
    of change: LoggedChange, _ body: (RawSpan) -> R
  ) throws(TidemarkError) -> R {
    try engine.reader.withValue(of: change.sequence) { (value, _) in body(value) }
  }

  /// Writes a checkpoint of the records, so that the next opening has little to read.
  func list(_ records: inout RecordTable) throws(TidemarkError) {
    try records.writeCheckpoint { (batch) throws(TidemarkError) in try engine.commit(batch) }
  }

  /// - Parameters:
  ///   - includesRecords: whether to include records, and entries derived from others.
  ///   - prefetches: whether the caller will ask of each entry if it is its key's newest.
  package func entries(
    from first: UInt64, through last: UInt64, includesRecords: Bool = false,
    prefetches: Bool = false
  ) -> LogCursor {
    LogCursor(
      engine.reader, from: first, through: last, includesRecords: includesRecords,
      prefetches: prefetches)
  }

  /// The most entries of an atomic group: more do not fit into a batch.
  private static let mostOfGroup = 4_096

  /// The members of a change's atomic group, which have consecutive sequences; only of a change
  /// with a group. Compaction drops no member of a group that is not sent yet.
  func atomicGroup(of change: LoggedChange) throws(TidemarkError) -> [LoggedChange] {
    let group = change.attributes.atomicGroup
    var members = [change]
    func member(at sequence: UInt64) throws(TidemarkError) -> LoggedChange? {
      guard let found = try self.change(at: sequence), found.attributes.atomicGroup == group,
        members.count < Self.mostOfGroup
      else { return nil }
      return found
    }
    while let previous = try member(at: members[0].sequence - 1) { members.insert(previous, at: 0) }
    while let next = try member(at: members[members.count - 1].sequence + 1) {
      members.append(next)
    }
    return members
  }

  /// Whether a change's key was evicted after it, so that the change must not be sent.
  func isEvicted(_ change: LoggedChange) throws(TidemarkError) -> Bool {
    try versions(ofKey: change.key, after: change.sequence).contains { $0.kind == .evict }
  }

  // MARK: Content of attachments

  /// The file of a content that is fetched in parts, made if there is none; nil if the whole
  /// content is there. Parts that an earlier process has left are verified first.
  func contentPart(of id: AttachmentID) throws(TidemarkError) -> AttachmentPartFile? {
    // Downloads are under the id `none`, which no replica has.
    let part = try engine.attachmentPart(of: id, for: ReplicaID.none.bytes, begins: true)
    while let part, try !part.verifyStored(most: 64 << 20) {}
    return part
  }

  // MARK: Writing

  /// - Throws: `conflict` if another writer has changed a key on which the batch sets a condition.
  func commit(
    _ batch: OperationBatch, durability: Durability
  ) throws(TidemarkError) -> CommitResult {
    // The content of pulled attachments is at the peer until it is fetched.
    let holds = try engine.noteElsewhere(batch.attachments)
    return try withExtendedLifetime(holds) { () throws(TidemarkError) in
      try engine.commit(batch, durability: durability)
    }
  }

  // MARK: Identity

  /// The replica id under which this store's entries are sent.
  var replica: ReplicaID { ReplicaID(engine.reader.replicaID) ?? ReplicaID.none }

  /// Draws another replica id for entries sent from now on.
  func changeReplica() throws(TidemarkError) { try engine.changeReplica() }

  /// Looks up an own change that no pulled entry has replaced. It does not retain the engine.
  var ownLookup: @Sendable (UInt64) -> PushedChange? {
    { [weak engine] sequence in
      engine.flatMap { try? ReplicationLog($0).ownChange(at: sequence) }
    }
  }

  private func ownChange(at sequence: UInt64) throws(TidemarkError) -> PushedChange? {
    guard let change = try change(at: sequence), change.isOwn else { return nil }
    let later = try versions(ofKey: change.key, after: sequence)
    let first = later.isEmpty ? try newestChange(ofKey: change.key)?.sequence : later.last?.previous
    guard later.allSatisfy({ $0.isOwn || $0.kind == .touch }), first == sequence else { return nil }
    // The lookup is for the content and the aliases, not for a base.
    return PushedChange(change, try content(of: change), upon: .absent)
  }

  // MARK: Surroundings

  var now: Timestamp { engine.environment.clock.now() }

  var monotonicNanoseconds: UInt64 { engine.environment.clock.monotonicNanoseconds() }

  func random() -> UInt64 { engine.environment.random.next() }
}

/// An entry of the log, decoded for replication.
package struct LoggedChange {
  package var sequence: UInt64
  var kind: EntryKind
  var key: [UInt8]
  var previous: UInt64
  /// The bytes of a put's value.
  var valueLength: Int
  /// When its writer, perhaps another store, committed it.
  package var commitTime: UInt64
  var labels: [EntryLabel]
  var attributes: EntryAttributes

  /// Whether it is to be replicated: a put or delete of class `owned`, written in this store.
  package var isOwn: Bool {
    attributes.origin == nil && attributes.entryClass == .owned
      && (kind == .put || kind == .delete)
  }

  /// Whether it was adopted: another replica's change that the feed had lost, written again here.
  var isBroughtBack: Bool { attributes.origin == nil && attributes.writerTime != 0 }

  /// - Parameter value: the value of a put; empty for a delete.
  func content(_ value: [UInt8]) -> SyncContent {
    guard kind == .put else { return SyncContent() }
    return SyncContent(value: value, labels: labels, attributes)
  }

  init(_ entry: LogEntry) throws(TidemarkError) {
    sequence = entry.sequence
    kind = entry.head.kind
    key = entry.key
    // Compaction keeps only the last of several touches, so the chain leads through what it renews.
    previous = entry.head.kind == .touch ? entry.head.valueSequence : entry.head.previous
    valueLength = entry.head.valueLength
    commitTime = entry.head.commitTime
    labels = entry.labels.map { EntryLabel($0) }
    attributes = try entry.attributes()
    if attributes.writerTime != 0 { commitTime = attributes.writerTime }
  }
}

extension OperationBatch {
  /// Adds a put or delete of replication.
  /// - Parameters:
  ///   - content: what the key gets; nil adds a delete, even of a key that was never written.
  ///   - attributes: the entry's attributes other than those of the content.
  ///   - slot: the key's newest entry, which must be the same at the commit.
  mutating func add(
    _ content: SyncContent?, ofKey key: [UInt8], _ attributes: EntryAttributes, upon slot: Slot?
  ) throws(TidemarkError) {
    let condition = addCondition(.entry(slot?.sequence ?? 0))
    guard let content else {
      return try add(
        .delete, key: key.rawSpan, attributes: attributes, condition: condition, isForced: true)
    }
    var attributes = attributes
    attributes.hash = content.hash
    attributes.maxAge = content.maxAgeSeconds
    attributes.attachment = content.attachment?.engineID
    let labels = try addLabelSet(content.labels.map(\.bytes))
    try add(
      .put, key: key.rawSpan, value: content.value.rawSpan, labelSet: labels,
      attributes: attributes, condition: condition)
  }

  /// Evicts an entry's key: removes it from this store alone, without a delete that would be sent.
  mutating func evict(_ entry: FeedEntry, upon slot: Slot) throws(TidemarkError) {
    var attributes = EntryAttributes()
    attributes.origin = EntryAttributes.Origin(
      replica: entry.operation.replica.bytes, sequence: entry.operation.sequence)
    attributes.base = .position(epoch: entry.position.epoch, offset: entry.position.offset)
    try add(
      .evict, key: entry.key.rawSpan, attributes: attributes,
      condition: addCondition(.entry(slot.sequence)))
  }
}
