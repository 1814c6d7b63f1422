internal import Tidemark
package import TidemarkEngine
internal import TidemarkSyncProtocol

/// A store's log as a session sees it: all calls that the client of replication makes to the
/// engine.
package struct ReplicationLog {
  private let engine: Engine

  package init(_ engine: Engine) { self.engine = engine }

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

  /// Whether a change is its key's newest entry; false if that is a touch.
  func isNewest(_ change: LoggedChange) throws(TidemarkError) -> Bool {
    try engine.reader.isNewest(change.sequence, ofKey: change.key.rawSpan)
  }

  package func content(of change: LoggedChange) throws(TidemarkError) -> SyncContent {
    try change.content(change.kind == .put ? withValue(of: change) { [UInt8](copying: $0) } : [])
  }

  func withValue<R>(
    of change: LoggedChange, _ body: (RawSpan) -> R
  ) throws(TidemarkError) -> R {
    try engine.reader.withValue(of: change.sequence) { (value, _) in body(value) }
  }

  /// A reader for values of changes that are near each other in the log.
  var values: RowReader { RowReader(engine.reader) }

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

  /// The members of a change's atomic group, which have consecutive sequences.
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
    var version = try newestChange(ofKey: change.key)
    while let found = version, found.sequence > change.sequence {
      if found.kind == .evict { return true }
      version = try self.change(at: found.previous)
    }
    return false
  }

  // MARK: Content of attachments

  func hasContent(_ id: AttachmentID) throws(TidemarkError) -> Bool {
    try engine.holdContent(of: id) != nil
  }

  func openContent(_ id: AttachmentID) throws(TidemarkError) -> AttachmentFileReader? {
    try engine.openAttachment(id)
  }

  /// The file of a content that is fetched in parts, made if there is none. Parts that an earlier
  /// process has left are verified first.
  func contentPart(of id: AttachmentID) throws(TidemarkError) -> AttachmentPartFile? {
    // Downloads are under the id `none`, which no replica has.
    let part = try engine.attachmentPart(of: id, for: ReplicaID.none.bytes, begins: true)
    while let part, try !part.verifyStored(most: 64 << 20) {}
    return part
  }

  /// Deletes content and records that it has to be fetched again.
  func releaseContent(_ id: AttachmentID) throws(TidemarkError) { try engine.releaseAttachment(id) }

  /// The newest entries of keys whose attachments' content this store lacks, in the order of the
  /// log.
  func entriesWithoutContent() throws(TidemarkError) -> [UInt64] {
    try engine.entriesWithoutContent()
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

  func records() throws(TidemarkError) -> RecordTable { try RecordTable(engine.reader) }

  // MARK: Identity

  /// The replica id under which this store's entries are sent.
  var replica: ReplicaID { ReplicaID(engine.reader.replicaID) ?? ReplicaID.none }

  /// Draws another replica id for entries sent from now on.
  func changeReplica() throws(TidemarkError) { try engine.changeReplica() }

  /// The id of this store, which copies of it share.
  var storeID: [UInt8] { engine.reader.storeID }

  /// Looks up an own change that no pulled entry has replaced. It does not retain the engine.
  var ownLookup: @Sendable (UInt64) -> PushedChange? {
    { [weak engine] sequence in
      engine.flatMap { try? ReplicationLog($0).ownChange(at: sequence) }
    }
  }

  private func ownChange(at sequence: UInt64) throws(TidemarkError) -> PushedChange? {
    guard let change = try change(at: sequence), change.isOwn else { return nil }
    var version = try newestChange(ofKey: change.key)
    while let later = version, later.sequence > sequence {
      guard later.isOwn || later.kind == .touch else { return nil }
      version = try self.change(at: later.previous)
    }
    guard version?.sequence == sequence else { return nil }
    return PushedChange(change, try content(of: change), upon: .absent)
  }

  // MARK: Extent

  /// About how many live keys the store has.
  var liveKeys: Int { engine.reader.liveKeys }

  /// The first sequence of the complete history: of earlier entries compaction has dropped some.
  func historyStart() throws(TidemarkError) -> UInt64 { try engine.reader.bounds().historyFrom }

  /// A value that changes when a compaction may have dropped entries.
  var generation: LogGeneration { engine.reader.generation }

  /// The pins of all other peers that have answered lately; nil for one that cannot be read.
  func pins(besides name: [UInt8]) throws(TidemarkError) -> [RetentionPin?] {
    try engine.livePins(butOf: name)
  }

  // MARK: Surroundings

  var isClosed: Bool { engine.reader.isClosed }

  var now: Timestamp { engine.environment.clock.now() }

  var monotonicNanoseconds: UInt64 { engine.environment.clock.monotonicNanoseconds() }

  func random() -> UInt64 { engine.environment.random.next() }

  /// A secret seed for tables of keys.
  var hashSeed: UInt64 { engine.reader.hashSeed }
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
