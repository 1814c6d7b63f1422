internal import Tidemark
internal import TidemarkEngine
internal import TidemarkSyncProtocol

/// A state of the replication with one peer, which reads share: the session's, as of the last
/// commit; a transaction's; and that of a batch that is being built.
package protocol PeerView {
  var session: SyncSession { get }
  var progress: PeerProgress { get }
  var settled: SettledRuns { get }
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

/// The value that a commit hands to its body: entries to write, and the session's state as it will
/// be once they are written.
package struct SyncTransaction: PeerView {
  package let session: SyncSession
  package var progress: PeerProgress
  package var settled: SettledRuns
  package var inFlight: BatchInFlight?
  var totals: SyncTotals
  var operations = OperationBatch()
  /// Keys that this commit writes to, which are not free for anything else.
  var arriving: Set<[UInt8]>

  init(_ session: SyncSession, arriving: Set<[UInt8]> = []) {
    self.session = session
    self.arriving = arriving
    (progress, settled) = (session.progress, session.settled)
    (inFlight, totals) = (session.inFlight, session.totals)
    if let range { progress.note(range) }
  }

  var outbox: Outbox {
    get { progress.outbox }
    _modify { yield &progress.outbox }
  }

  /// Stores the remote state of a key beside its value.
  mutating func writeRemote(_ state: RemoteState, ofKey key: [UInt8]) throws(TidemarkError) {
    try records.write(state, ofKey: key, into: &operations)
  }

  mutating func forgetRemote(ofKey key: [UInt8]) throws(TidemarkError) {
    try records.forgetRemote(ofKey: key, into: &operations)
  }
}

extension SyncSession: PeerView {
  package var session: SyncSession { self }

  /// Commits entries together with what they change in the peer's records.
  ///
  /// - Parameters:
  ///   - durability: `buffered` for what the peer would say again.
  ///   - keepsNextBatch: whether the batch that was built ahead may still be the next one.
  ///   - mayWait: whether a change of the peer's progress alone is left to the next commit: after a
  ///     crash the peer says the same again.
  ///   - changes: those of the peer's names for keys.
  ///   - arriving: the keys that get their remote states.
  ///   - body: fills the transaction; it runs again when somebody else wrote one of the keys.
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
          (settledThrough, hasUnwritten) = (newPin(unread: nil).settledThrough, true)
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
      .conflict, "others write the same keys all the time; the replicator tries again later")
  }

  private static let attempts = 64

  private func write(_ changed: SyncTransaction, _ durability: Durability) throws {
    var transaction = changed
    let unread = transaction.settled.firstUnread(after: transaction.progress.cursor.offset)
    let pin = transaction.newPin(unread: unread)
    let basis = try records.write(
      transaction.progress, &transaction.settled, transaction.batchInFlight, pin,
      into: &transaction.operations)
    let result = try log.commit(transaction.operations, durability: durability)
    // From here on the commit counts, even if listing the records fails.
    transaction.outbox.wereWritten()
    if transaction.totals.resolved > totals.resolved { resolvedThrough = log.head }
    adopt(transaction)
    (self.pin, settledThrough, hasUnwritten) = (pin, pin.settledThrough, false)
    records.basisWasWritten(basis)
    try records.note(transaction.operations, result)
  }

  private func adopt(_ transaction: SyncTransaction) {
    (progress, settled) = (transaction.progress, transaction.settled)
    (inFlight, totals) = (transaction.inFlight, transaction.totals)
  }

  /// Changes the state in memory only. The next commit writes it, and after a crash the peer tells
  /// the same again.
  func update(_ body: (inout SyncTransaction) throws -> Void) rethrows {
    var transaction = SyncTransaction(self)
    try body(&transaction)
    adopt(transaction)
  }

  /// Commits what `update` has changed, and a frontier that has moved: compaction need not keep
  /// what lies before it.
  package func writeDown() throws {
    let hasPassed = progress.feed != nil && pin.map { $0.frontier < outbox.frontier } ?? false
    guard hasUnwritten || hasPassed else { return }
    try commit(.buffered, keepsNextBatch: true) { _ in }
  }

  /// A pin of this age is written again before it expires.
  fileprivate static let millisecondsToRenew: UInt64 = 86_400_000

  /// Renews the pin of a peer that answers but gives no reason for a commit.
  func renewPin() throws {
    let now = UInt64(clamping: max(0, log.now.milliseconds))
    guard let pin, now &- pin.renewed >= Self.millisecondsToRenew else { return }
    try commit(keepsNextBatch: true) { _ in }
  }
}

extension PeerView {
  /// The pin of what the peer has yet to hear of: pending deletes, and what pending changes were
  /// made upon. And of deletes that stand in the feed, as long as what stands before own ones
  /// there has yet to come; of all of them, while a restored feed is read once more: of a key
  /// without any version it was compared that it is gone.
  /// - Parameter unread: the first own change in the feed behind what was read of it.
  /// - Returns: the pin, which counts once it is committed.
  func newPin(unread: UInt64?) -> RetentionPin {
    let now = UInt64(clamping: max(0, log.now.milliseconds))
    var pending = outbox.pending
    pending.formUnion(sequencesInFlight)
    // The base of a refused change lies beside its key, and a put is its key's value. A change that
    // lay outside of a scope is decided, too, and not in the feed.
    var isQuiet = pending.isEmpty && scope.isEverything && progress.scope == 0
    for entry in outbox.waiting.entries.values {
      if !entry.reason.isParked { isQuiet = false }
      if !entry.reason.isParked || entry.isDelete { pending.insert(entry.sequence) }
    }
    let pin = session.pin
    if PlantedSyncBug.isOn(.pinNotMoved), let pin { return pin }
    let renewed = RetentionPin(
      frontier: outbox.frontier, pending: pending,
      settledThrough: isQuiet ? outbox.frontier : session.settledThrough,
      unread: progress.readsAgain ? 1 : unread, renewed: now)
    if let pin, pin.keepsSame(as: renewed), now &- pin.renewed < SyncSession.millisecondsToRenew {
      return pin
    }
    return renewed
  }
}
