internal import Tidemark
internal import TidemarkEngine
internal import TidemarkSyncProtocol

/// The state of replication with one peer: of the session (its last commit), of a transaction, or
/// of a batch that is being built. Extensions share the reads of all three.
package protocol PeerView {
  var session: SyncSession { get }
  var progress: PeerProgress { get }
  var acknowledged: AcknowledgedRuns { get }
  var inFlight: BatchInFlight? { get }
}

extension PeerView {
  var log: ReplicationLog { session.log }
  var records: PeerRecords { session.records }
  var scope: SyncScope { session.scope }
  var capabilities: PeerCapabilities { session.capabilities }
  var range: FeedRange? { session.range }
  package var replica: ReplicaID { log.replica }
  package var outbox: Outbox { progress.outbox }
  package var batchInFlight: OutgoingBatch? { inFlight?.batch }
  var sequencesInFlight: SequenceSet { inFlight?.sequences ?? SequenceSet() }
}

/// What a commit's body changes: the entries to write, and the session's state as it will be once
/// they are written.
package struct SyncTransaction: PeerView {
  package let session: SyncSession
  package var progress: PeerProgress
  package var acknowledged: AcknowledgedRuns
  package var inFlight: BatchInFlight?
  var totals: SyncTotals
  var operations = OperationBatch()
  /// Keys that this commit writes; ``Resolution/both(localKey:)`` must not choose one of them.
  var arriving: Set<[UInt8]>

  init(_ session: SyncSession, arriving: Set<[UInt8]> = []) {
    self.session = session
    self.arriving = arriving
    (progress, acknowledged) = (session.progress, session.acknowledged)
    (inFlight, totals) = (session.inFlight, session.totals)
    if let range { progress.note(range) }
  }

  var outbox: Outbox {
    get { progress.outbox }
    _modify { yield &progress.outbox }
  }

  /// Saves the feed's version of a key in a record, beside the key's local value.
  mutating func writeRemote(_ state: RemoteState, ofKey key: [UInt8]) throws(TidemarkError) {
    try records.write(state, ofKey: key, into: &operations)
  }

  mutating func forgetRemote(ofKey key: [UInt8]) throws(TidemarkError) {
    try records.forgetRemote(ofKey: key, into: &operations)
  }
}

extension SyncSession: PeerView {
  package var session: SyncSession { self }

  /// Commits entries and the peer's records in one atomic batch.
  ///
  /// - Parameters:
  ///   - durability: `buffered` for what a later answer of the peer would repeat after a crash.
  ///   - keepsNextBatch: whether the batch that was built ahead stays valid.
  ///   - mayWait: whether to leave it to the next commit if only the progress changes, since the
  ///     peer would repeat that after a crash.
  ///   - changes: the changes of the peer's aliases.
  ///   - arriving: the keys that the commit writes.
  ///   - body: fills the transaction; it runs again if another writer has changed one of the keys.
  func commit(
    _ durability: Durability = .durable, keepsNextBatch: Bool = false, mayWait: Bool = false,
    aliases changes: AliasChanges? = nil, arriving: Set<[UInt8]> = [],
    _ body: (inout SyncTransaction) throws -> Void
  ) throws {
    if !keepsNextBatch { nextBatch = nil }
    for _ in 0..<Self.attempts {
      var transaction = SyncTransaction(self, arriving: arriving)
      do {
        try body(&transaction)
        if let changes { try records.write(changes, into: &transaction.operations) }
        if mayWait, transaction.operations.isEmpty, transaction.outbox.waiting.changed.isEmpty {
          adopt(transaction)
          (acknowledgedThrough, hasUnwritten) = (newPin(unread: nil).acknowledgedThrough, true)
          return
        }
        try write(transaction, durability)
      } catch {
        guard (error as? TidemarkError)?.code == .conflict else { throw error }
        continue
      }
      if let changes { aliases?.apply(changes) }
      return
    }
    throw TidemarkError(
      .conflict, "the same keys are written all the time; the replicator tries again later")
  }

  private static let attempts = 64

  private func write(_ changed: SyncTransaction, _ durability: Durability) throws {
    var transaction = changed
    let unread = transaction.acknowledged.firstUnread(after: transaction.progress.cursor.offset)
    let pin = transaction.newPin(unread: unread)
    let basis = try records.write(
      transaction.progress, &transaction.acknowledged, transaction.batchInFlight, pin,
      into: &transaction.operations)
    let result = try log.commit(transaction.operations, durability: durability)
    // From here on the commit is done, even if the checkpoint of the records fails.
    transaction.outbox.waiting.wereWritten()
    if transaction.totals.resolved > totals.resolved { resolvedThrough = log.head }
    adopt(transaction)
    (self.pin, acknowledgedThrough, hasUnwritten) = (pin, pin.acknowledgedThrough, false)
    records.basis = basis
    try records.note(transaction.operations, result)
  }

  private func adopt(_ transaction: SyncTransaction) {
    (progress, acknowledged) = (transaction.progress, transaction.acknowledged)
    (inFlight, totals) = (transaction.inFlight, transaction.totals)
  }

  /// Changes the state in memory only. The next commit saves it, and after a crash the peer's
  /// answers bring it again.
  func update(_ body: (inout SyncTransaction) throws -> Void) rethrows {
    var transaction = SyncTransaction(self)
    try body(&transaction)
    adopt(transaction)
  }

  /// Commits what `update` has changed, and a frontier that has moved, so that compaction can drop
  /// replaced entries up to it.
  package func writeDown() throws {
    let hasPassed = progress.feed != nil && pin.map { $0.frontier < outbox.frontier } ?? false
    guard hasUnwritten || hasPassed else { return }
    try commit(.buffered, keepsNextBatch: true) { _ in }
  }

  /// The age at which a pin is renewed, long before it expires.
  fileprivate static let millisecondsToRenew: UInt64 = 86_400_000

  /// Renews the pin at an answer that needs no other commit.
  func renewPin() throws {
    let now = UInt64(clamping: max(0, log.now.milliseconds))
    guard let pin, now &- pin.renewed >= Self.millisecondsToRenew else { return }
    try commit(keepsNextBatch: true) { _ in }
  }
}

extension PeerView {
  /// The retention pin: what compaction must keep for this peer. That is pending changes and their
  /// bases; and deletes since the first own change that the feed has after the cursor, or all
  /// deletes while a restored feed is pulled again, so that an older entry does not bring the key
  /// back.
  /// - Parameter unread: the first own change that the feed has after the cursor.
  /// - Returns: the pin, in force once it is committed.
  func newPin(unread: UInt64?) -> RetentionPin {
    let now = UInt64(clamping: max(0, log.now.milliseconds))
    var pending = outbox.pending
    pending.formUnion(sequencesInFlight)
    // A parked put needs no pin: it is its key's value, and its base is the remote state. Changes
    // out of scope are decided without being in the feed, so the pin may not say that they are.
    var isQuiet = pending.isEmpty && scope.isEverything && progress.scope == 0
    for entry in outbox.waiting.entries.values {
      if !entry.reason.isParked { isQuiet = false }
      if !entry.reason.isParked || entry.isDelete { pending.insert(entry.sequence) }
    }
    let pin = session.pin
    if PlantedSyncBug.isOn(.pinNotMoved), let pin { return pin }
    let renewed = RetentionPin(
      frontier: outbox.frontier, pending: pending,
      acknowledgedThrough: isQuiet ? outbox.frontier : session.acknowledgedThrough,
      unread: progress.isRereading ? 1 : unread, renewed: now)
    if let pin, pin.keepsSame(as: renewed), now &- pin.renewed < SyncSession.millisecondsToRenew {
      return pin
    }
    return renewed
  }
}
