internal import Tidemark
package import TidemarkEngine
internal import TidemarkSyncProtocol

/// A store's log as a session sees it: all that the client of replication asks of the engine.
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

  /// The newest put or delete of a key: what a touch renews counts, not the touch.
  package func newestChange(ofKey key: [UInt8]) throws(TidemarkError) -> LoggedChange? {
    guard let slot = try slot(ofKey: key) else { return nil }
    guard slot.size.isTouched else { return try change(at: slot.sequence) }
    return try change(at: try engine.reader.entry(at: slot.sequence).head.valueSequence)
  }

  /// The entry of a key that counts, a touch too, as the index has it.
  func slot(ofKey key: [UInt8]) throws(TidemarkError) -> Slot? {
    try engine.reader.slot(ofKey: key.rawSpan)
  }

  /// Whether a change is its key's newest entry; false where that is a touch.
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

  /// Reads values of changes that stand near each other.
  var values: RowReader { RowReader(engine.reader) }

  /// Lists the newest records, so that the next opening has little to read.
  func list(_ records: inout RecordTable) throws(TidemarkError) {
    try records.writeCheckpoint { (batch) throws(TidemarkError) in try engine.commit(batch) }
  }

  /// - Parameters:
  ///   - includesRecords: also records, and entries that are derived from others.
  ///   - prefetches: whether it will be asked of each whether it is the newest of its key.
  package func entries(
    from first: UInt64, through last: UInt64, includesRecords: Bool = false,
    prefetches: Bool = false
  ) -> LogCursor {
    LogCursor(
      engine.reader, from: first, through: last, includesRecords: includesRecords,
      prefetches: prefetches)
  }

  /// Most entries of a group: more do not fit into a batch.
  private static let mostOfGroup = 4_096

  /// The entries written with one, to apply at a peer together: one stands behind the other.
  func atomicGroup(of change: LoggedChange) throws(TidemarkError) -> [LoggedChange] {
    let group = change.attributes.atomicGroup
    var members = [change]
    func member(at sequence: UInt64) throws(TidemarkError) -> LoggedChange? {
      guard let found = try self.change(at: sequence), found.attributes.atomicGroup == group,
        members.count < Self.mostOfGroup
      else { return nil }
      return found
    }
    while let former = try member(at: members[0].sequence - 1) { members.insert(former, at: 0) }
    while let next = try member(at: members[members.count - 1].sequence + 1) {
      members.append(next)
    }
    return members
  }

  /// Whether a change's key was taken away from this store since: it is nobody's any more.
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

  /// Content that is fetched in parts, from its beginning if there is none yet. Parts that an
  /// earlier process has left are compared before they count.
  func contentPart(of id: AttachmentID) throws(TidemarkError) -> AttachmentPartFile? {
    // No replica has this name.
    let part = try engine.attachmentPart(of: id, for: ReplicaID.none.bytes, begins: true)
    while let part, try !part.verifyStored(most: 64 << 20) {}
    return part
  }

  /// Takes content away and remembers that it was here.
  func releaseContent(_ id: AttachmentID) throws(TidemarkError) { try engine.releaseAttachment(id) }

  /// The newest entries of keys whose content is elsewhere, in the order of the log.
  func entriesWithoutContent() throws(TidemarkError) -> [UInt64] {
    try engine.entriesWithoutContent()
  }

  // MARK: Writing

  /// - Throws: `conflict` where somebody else has written a key that one is conditional upon.
  func commit(
    _ batch: OperationBatch, durability: Durability
  ) throws(TidemarkError) -> CommitResult {
    // Content of others is at the peer until somebody fetches it.
    let holds = try engine.noteElsewhere(batch.attachments)
    return try withExtendedLifetime(holds) { () throws(TidemarkError) in
      try engine.commit(batch, durability: durability)
    }
  }

  func records() throws(TidemarkError) -> RecordTable { try RecordTable(engine.reader) }

  // MARK: Identity

  /// The name of this store's own entries.
  var replica: ReplicaID { ReplicaID(engine.reader.replicaID) ?? ReplicaID.none }

  /// Gives own entries another name from here on.
  func changeReplica() throws(TidemarkError) { try engine.changeReplica() }

  /// The id of this store, which its copies have as well.
  var storeID: [UInt8] { engine.reader.storeID }

  /// Gives own changes in whose place nothing from elsewhere has come, and does not keep the store
  /// open.
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

  /// About how many keys there are.
  var liveKeys: Int { engine.reader.liveKeys }

  /// Where the whole history begins: of older entries some were dropped.
  func historyStart() throws(TidemarkError) -> UInt64 { try engine.reader.bounds().historyFrom }

  /// The log as it is now: another one once a compaction may have dropped entries.
  var generation: LogGeneration { engine.reader.generation }

  /// The pins of all other peers that still give signs of life; nil for one that cannot be read.
  func pins(besides name: [UInt8]) throws(TidemarkError) -> [RetentionPin?] {
    try engine.livePins(butOf: name)
  }

  // MARK: Surroundings

  var isClosed: Bool { engine.reader.isClosed }

  var now: Timestamp { engine.environment.clock.now() }

  var monotonicNanoseconds: UInt64 { engine.environment.clock.monotonicNanoseconds() }

  func random() -> UInt64 { engine.environment.random.next() }

  /// A seed for tables of keys, which others cannot know.
  var hashSeed: UInt64 { engine.reader.hashSeed }
}

/// An entry of the log as replication sees it.
package struct LoggedChange {
  package var sequence: UInt64
  var kind: EntryKind
  var key: [UInt8]
  var previous: UInt64
  /// Bytes of what a put gave.
  var valueLength: Int
  /// When its writer committed it: another store, where it came from there.
  package var commitTime: UInt64
  var labels: [EntryLabel]
  var attributes: EntryAttributes

  /// Whether this store wrote it, and replication is to carry it.
  package var isOwn: Bool {
    attributes.origin == nil && attributes.entryClass == .owned
      && (kind == .put || kind == .delete)
  }

  /// Whether it is a change of another's, which the feed had lost and this store has brought back.
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
    // Compaction keeps only the last of several touches: what they renew is the way to what was
    // before.
    previous = entry.head.kind == .touch ? entry.head.valueSequence : entry.head.previous
    valueLength = entry.head.valueLength
    commitTime = entry.head.commitTime
    labels = entry.labels.map { EntryLabel($0) }
    attributes = try entry.attributes()
    if attributes.writerTime != 0 { commitTime = attributes.writerTime }
  }
}

extension OperationBatch {
  /// Adds a put, or a delete, that replication makes.
  /// - Parameters:
  ///   - content: what the key gets; nil deletes it, also where it was never written.
  ///   - attributes: those of the entry beside what the content says.
  ///   - slot: the newest entry of the key, which must not have changed when it is committed.
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

  /// Takes an entry's key away from this store, and from nobody else.
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
