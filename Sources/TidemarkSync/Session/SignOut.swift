internal import Tidemark
package import TidemarkEngine
package import TidemarkSyncProtocol

/// A user's sign-out that was begun: a record in the log, under the peer's name, so that a crash
/// does not end it. Until its entries are evicted, no session of any peer replicates anything.
struct SignOut: Sendable, Hashable {
  private static let perCommit = 256
  private static let attempts = 64

  /// The last sequence of the user who signs out; later entries belong to the next user.
  var through: UInt64 = 0
  /// Entries within one of these scopes are kept.
  var kept: [SyncScope] = []

  /// Carries out every recorded sign-out, also one that a killed process left unfinished.
  /// - Parameter table: the store's records.
  /// - Returns: whether there was one.
  static func finish(_ table: RecordTable, in log: ReplicationLog) throws(TidemarkError) -> Bool {
    let names = table.keys(of: .signOut)
    for name in names {
      guard let signOut: SignOut = try table.read(.signOut, key: name) else { continue }
      try signOut.execute(for: name, in: log)
    }
    return !names.isEmpty
  }

  private func execute(for peer: [UInt8], in log: ReplicationLog) throws(TidemarkError) {
    let records = try PeerRecords(log, peer: peer)
    // Under a new replica id the feed sends these entries' values again, as another replica's.
    try log.changeReplica()
    var keys: [[UInt8]] = []
    var cursor = log.entries(from: 1, through: through)
    while let entry = try cursor.next() {
      guard entry.head.kind == .put || entry.head.kind == .delete,
        let newest = try log.newestChange(ofKey: entry.key), newest.sequence == entry.sequence,
        try covers(newest, log)
      else { continue }
      keys.append(entry.key)
      guard keys.count == Self.perCommit else { continue }
      try evict(keys, records)
      keys = []
    }
    try evict(keys, records)
    var batch = OperationBatch()
    let others = PeerRecords.names(in: records.table).subtracting([peer])
    try records.removeAll(isLast: others.isEmpty, into: &batch)
    _ = try log.commit(batch, durability: .durable)
  }

  /// Whether an entry is evicted; deletes too, which the next user's session could send or adopt.
  func covers(_ change: LoggedChange, _ log: ReplicationLog) throws(TidemarkError) -> Bool {
    guard change.sequence <= through, change.attributes.entryClass == .owned else { return false }
    let labels =
      change.kind == .delete
      ? try log.change(at: change.previous)?.labels ?? [] : change.labels
    return !kept.contains { $0.contains(key: change.key, labels: labels) }
  }

  private func evict(_ keys: [[UInt8]], _ records: PeerRecords) throws(TidemarkError) {
    for _ in 0..<Self.attempts {
      var batch = OperationBatch()
      for key in keys {
        // A key that was written again since belongs to the next user.
        guard let slot = try records.log.slot(ofKey: key),
          let newest = try records.log.newestChange(ofKey: key), newest.sequence <= through
        else { continue }
        if PlantedSyncBug.isOn(.outboxKept), newest.isOwn { continue }  // A fault only for tests.
        try batch.evict(.nothing(key, at: .beginning, .left), upon: slot)
        try records.forgetRemote(ofKey: key, into: &batch)
      }
      if batch.isEmpty { return }
      do throws(TidemarkError) {
        return try records.note(batch, records.log.commit(batch, durability: .buffered))
      } catch {
        guard error.code == .conflict else { throw error }
      }
    }
    throw TidemarkError(.conflict, "the same keys are written all the time; sign out again")
  }
}

extension SignOut: StoredRecord {
  mutating func code(_ record: inout FrameCursor) throws(FormatError) {
    try record.version(1)
    try record.varint(&through)
    var count = kept.count
    try record.count(&count, atMost: .max, each: 2)
    for index in 0..<count {
      var scope = record.isReading ? SyncScope.everything : kept[index]
      try scope.code(&record)
      if record.isReading { kept.append(scope) }
    }
  }
}

extension SyncSession {
  /// Records that a user signs out; no session replicates before that is carried out.
  /// - Throws: ``UnsentChangesError`` if the peer lacks entries, unless it is forced.
  package func beginSignOut(keeping kept: [SyncScope], isForced: Bool) throws {
    let signOut = SignOut(through: log.head, kept: kept)
    let unsent = isForced ? [] : try unsent(signOut)
    guard unsent.isEmpty else {
      throw UnsentChangesError(entries: unsent.count, keys: unsent.prefix(100).map { Key($0) })
    }
    try records.record(.signOut, try signOut.encoded(), durability: .durable)
  }

  /// Carries out the recorded sign-outs from any peer of the store.
  /// - Returns: whether there were any; then this session is stale, and another one is needed.
  package func finishSignOut() throws(TidemarkError) -> Bool {
    try SignOut.finish(records.table, in: log)
  }

  /// The keys of own entries that a sign-out would evict although the feed does not have them.
  func unsent(_ signOut: SignOut) throws(TidemarkError) -> [[UInt8]] {
    var keys: [[UInt8]] = []
    var cursor = log.entries(from: 1, through: signOut.through)
    while let entry = try cursor.next() {
      guard entry.head.kind == .put || entry.head.kind == .delete else { continue }
      let change = try LoggedChange(entry)
      guard change.isOwn, position(of: change) == nil,
        try log.newestChange(ofKey: change.key)?.sequence == change.sequence,
        try signOut.covers(change, log)
      else { continue }
      if change.kind == .delete, try !isWorthSending(change) { continue }
      keys.append(change.key)
    }
    return keys
  }
}
