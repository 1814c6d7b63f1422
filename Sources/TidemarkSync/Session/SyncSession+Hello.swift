internal import Tidemark
internal import TidemarkEngine
internal import TidemarkSyncProtocol

extension SyncSession {
  /// Handles the answer to a hello, and finds out what has changed since the last: another feed,
  /// one restored from a backup, a copy of this store, another scope or authorization.
  func handle(_ answer: HelloAnswer) throws {
    limits = SyncLimits(
      changes: max(1, min(answer.limits.changes, SyncLimits().changes)),
      bytes: max(1, min(answer.limits.bytes, SyncLimits.mostBytes)))
    let hasCompared = hasCompared
    self.hasCompared = false
    range = answer.range
    reach = answer.reach
    attachmentBytes = answer.attachmentBytes
    usePolicies(of: answer)
    incoming.startAt(head: answer.range.head, reach: answer.reach)
    lastMark = (answer.mark.number, answer.mark.batchID, answer.range.head)
    do {
      try compare(answer, hasCompared)
      try resendWithAttachments()
    } catch {
      disconnect()
      throw error
    }
  }

  private func compare(_ answer: HelloAnswer, _ hasCompared: Bool) throws {
    if progress.feed != answer.feed {
      let hadPulled = progress.cursor != .beginning
      // A delayed batch for the old feed may match the numbers of this one, so this store takes a
      // new replica id, and does so first: a crash in between must not lose it.
      let hadSent = progress.feed != nil && (progress.number > 0 || batchInFlight != nil)
      if hadSent { try log.changeReplica() }
      try beginAnew(with: answer)
      // The peer takes a cursor of another feed for an expired one of its own. After another hello
      // all is pulled from the beginning, deletes included.
      if hadPulled || hadSent { return disconnect() }
    } else if !holdsWhatIsKnown(answer.range) {
      // A hello under the new replica id follows.
      return try rewind(to: answer)
    }
    try settle(answer.mark)
    try compareMarks(answer.mark)
    guard range != nil else { return }
    if answer.isLeaseExpired {
      // The peer may have dropped deletes that were not pulled yet.
      try beginResync(seenThrough: progress.cursor.offset)
    }
    if progress.scope != Self.fingerprint(of: scope) || isOfAnotherReach(answer) {
      try changeScope(answer)
    }
    if hasCompared, progress.resync == nil { totals.resyncs += 1 }
    try pruneSettled()
  }

  /// Drops the positions of own changes that compaction has dropped: no change is based upon them.
  /// Positions after the cursor stay, since the feed will echo these changes.
  private func pruneSettled() throws {
    let history = try log.reader.bounds().historyFrom
    guard history > prunedHistory, progress.resync == nil else { return }
    prunedHistory = history
    let unread = acknowledged.firstUnread(after: progress.cursor.offset) ?? .max
    // Two versions of a live key are asked for: its newest, and the base of a pending one.
    let least = 2 * log.reader.liveKeys + Self.runsUnpruned
    let kept = try acknowledged.pruned(above: least) { run in
      // A long run takes no more bytes than a short one, and more time to search.
      try run.last >= min(history, unread) || run.count > Self.mostInShortRun
        || run.sequences.contains { try log.change(at: $0) != nil }
    }
    guard let kept else { return }
    try commit(.buffered) { tx in tx.acknowledged.replaceAll(with: kept) }
  }

  private static let mostInShortRun: UInt64 = 64
  private static let runsUnpruned = 64

  /// Begins with a first or recreated feed: all owned entries are pending, and nothing is purged.
  private func beginAnew(with answer: HelloAnswer) throws {
    let hadPeer = progress.feed != nil
    comparing = nil
    let aliases = try knownAliases()
    let named = aliases.all.compactMap { aliases.key(ofAlias: $0)?.bytes }
    try commit(aliases: aliasChanges(ofAbsent: named)) { tx in
      tx.inFlight = nil
      var next = PeerProgress()
      // Emptied, not made anew: what waited has to be deleted in the log.
      next.outbox = outbox
      next.outbox.removeAll()
      next.renamedThrough = progress.renamedThrough
      next.name = replica
      next.feed = answer.feed
      if PlantedSyncBug.isOn(.markOfAnotherTaken) {  // A fault that only tests switch on.
        next.count(answer.mark.number, answer.mark.batchID)
      }
      // If the feed has batches under this replica id, `compareMarks` takes another one.
      next.scope = Self.fingerprint(of: scope)
      next.reach = answer.reach ?? 0
      // Entries of the old feed are adopted: they become own changes and are sent. A comparison is
      // needed as well, since a feed recreated from a backup lists positions of the old one.
      if hadPeer {
        next.possiblyKnownThrough = progress.lastSent
        next.resync = Resync(
          adopts: true, compares: capabilities.hasDigest, keepsCursor: capabilities.hasDigest)
      }
      tx.progress = next
      tx.acknowledged.removeAll()
    }
  }

  /// Rewinds to the last position in common with a feed that was restored from a backup: own
  /// changes after it are pending again, and those of other replicas are adopted and sent.
  private func rewind(to answer: HelloAnswer) throws {
    let common = min(
      progress.cursor.offset,
      answer.range.lastCommonOffset(with: progress.knownRange)
        ?? answer.range.lastCommonOffset(with: progress.cursor) ?? 0)
    // A delayed batch may match the numbers of the restored feed, so this store takes a new replica
    // id; what the backup has of the batch is pulled. The id changes first: after a crash in
    // between the next hello still finds the feed restored.
    if !PlantedSyncBug.isOn(.lateBatchForgotten) { try log.changeReplica() }
    comparing = nil
    try commit { tx in
      tx.progress.cursor = answer.range.position(ofOffset: common)
      tx.progress.resumption = []
      tx.progress.possiblyKnownThrough = tx.progress.lastSent
      tx.progress.comparedThrough = .beginning
      tx.acknowledged.findUnread(after: common)
      tx.adoptReplica()
      if PlantedSyncBug.isOn(.lateBatchForgotten) {
        tx.resendBatch()
        tx.progress.count(answer.mark.number, answer.mark.batchID)
      }
      let before = tx.acknowledged
      // A delete of an absent key got the position `beginning`; a later backup may have the key.
      for sequence in tx.acknowledged.removeLost({ $0 != .beginning && answer.range.contains($0) })
      {
        if PlantedSyncBug.isOn(.lostNotSentAgain) { continue }
        tx.outbox.resend(sequence)
        // If it replaced a change that was never sent, compaction may have dropped its base.
        if let change = try log.change(at: sequence),
          let below = try log.change(at: change.previous), below.isOwn,
          before.position(of: below.sequence) == nil
        {
          try tx.keepBase(of: change)
        }
      }
      // The feed may have lost the versions that these conflict with.
      for (sequence, reason) in tx.outbox.waiting where reason.position != nil {
        tx.outbox.resend(sequence)
      }
      tx.progress.resync = Resync(
        adopts: true, compares: capabilities.hasDigest, seenThrough: common,
        keepsCursor: true, evicts: tx.progress.resync?.evicts ?? false)
    }
    // The table of urgent changes lacks those that are pending again; it is built anew.
    deferred = DeferredChanges()
    // The next call is a hello under the new replica id.
    disconnect()
  }

  /// Whether the authorization covers other entries than when the cursor was saved.
  private func isOfAnotherReach(_ answer: HelloAnswer) -> Bool {
    if PlantedSyncBug.isOn(.reachIgnored) { return false }
    return answer.reach.map { $0 != progress.reach } ?? false
  }

  /// Switches to another scope or reach: entries that come into it may be earlier in the feed than
  /// the cursor, and a pull does not show what the feed lacks, so everything is compared.
  private func changeScope(_ answer: HelloAnswer) throws {
    let isOfAnotherReach = isOfAnotherReach(answer)
    // Own changes may be in the feed although nothing was pulled yet.
    let isFirst = progress.cursor == .beginning && (!isOfAnotherReach || acknowledged.isEmpty)
    if !isFirst { try beginResync(seenThrough: 0) }
    let passed = try passedOver()
    let refused = isOfAnotherReach ? try refusedForReach() : []
    try commit { tx in
      tx.progress.scope = Self.fingerprint(of: scope)
      tx.progress.reach = answer.reach ?? tx.progress.reach
      // Keys that came into the scope were not compared.
      tx.progress.comparedThrough = .beginning
      // The peer may have lost keys outside the scope in a restore meanwhile.
      tx.progress.resync = tx.progress.resync ?? Resync()
      tx.progress.resync?.adopts = true
      // Under a bounded authorization a key may have left the reach unseen, outside the old scope.
      if isOfAnotherReach || tx.progress.reach != 0 { tx.progress.resync?.evict() }
      for sequence in passed + refused { tx.outbox.resend(sequence) }
    }
  }

  /// Changes that were refused for lack of authorization, with the members of their atomic groups
  /// that were given up with them: the changed authorization may cover them.
  private func refusedForReach() throws(TidemarkError) -> [UInt64] {
    var found: [UInt64] = []
    for entry in outbox.waiting.entries.values where entry.reason.code == SyncRejection.outOfReach {
      found.append(entry.sequence)
      guard entry.isOfGroup, let change = try log.change(at: entry.sequence) else { continue }
      for member in try log.atomicGroup(of: change)
      where outbox.waiting[member.sequence]?.code == SyncRejection.ofGroup {
        found.append(member.sequence)
      }
    }
    return found
  }

  /// Own changes that were not sent since they were out of the scope and are within it now.
  private func passedOver() throws(TidemarkError) -> [UInt64] {
    if PlantedSyncBug.isOn(.outsideForgotten) { return [] }
    var passed: [UInt64] = []
    var cursor = log.entries(from: 1, through: log.head)
    while let entry = try cursor.next() {
      guard entry.head.kind == .put else { continue }
      let change = try LoggedChange(entry)
      // One below a pending change counts as well, so that the pin keeps the base of both.
      guard isUnsentPut(change), !isPending(change),
        let newest = try log.newestChange(ofKey: change.key),
        newest.sequence == change.sequence || isPending(newest), try isWithin(newest)
      else { continue }
      passed.append(change.sequence)
    }
    return passed
  }

  /// A number that identifies a scope; 0 for everything.
  static func fingerprint(of scope: SyncScope) -> UInt64 {
    scope.isEverything ? 0 : scope.hash(seed: 1)
  }

  /// Handles a mark, the peer's last batch of this replica, that is neither that of the last batch
  /// known here nor of the one in flight.
  private func compareMarks(_ mark: ReplicaMark) throws {
    if mark.number == progress.number, mark.batchID == progress.batchID { return }
    if PlantedSyncBug.isOn(.cloneNotNoticed) {
      return try commit { $0.progress.count(mark.number, mark.batchID) }
    }
    // The peer has dropped this replica's mark and kept its entries.
    if mark.number == 0 {
      return try commit { tx in
        tx.resendBatch()
        tx.progress.count(0, .none)
      }
    }
    // The peer has batches with this replica id that this store did not send: it is a copy of
    // another store, or was restored. Under a new id the pull gives it their entries.
    try rename()
  }

  /// Takes a new replica id: what a copy of this store wrote under the old one is another's.
  func rename() throws {
    try log.changeReplica()
    try commit { tx in tx.adoptReplica() }
    // The peer takes a store that has pulled nothing for an empty one and keeps no deletes for it.
    if progress.cursor == .beginning, !acknowledged.isEmpty { try beginResync(seenThrough: 0) }
    // The next call is a hello under the new replica id.
    disconnect()
  }
}

extension PeerView {
  /// Whether a batch is the one in flight, or the last one that the peer has answered.
  func isOurs(_ number: UInt64, _ id: BatchID) -> Bool {
    if number == progress.number { return number > 0 && id == progress.batchID }
    guard let batch = batchInFlight, number == batch.number else { return false }
    return id == batch.batchID || id == batch.batchID.ofEmpty
  }
}

extension SyncTransaction {
  /// Numbers batches from 1 if the store's replica id has changed since the last commit for this
  /// peer: before a crash, or in a session with another peer.
  mutating func adoptReplica() {
    guard progress.name != replica else { return }
    let isFirst = progress.name == .none
    progress.name = replica
    if isFirst { return }
    progress.count(0, .none)
    progress.renamedThrough = log.head
    // The feed may have changes up to here under the previous id, whose verdicts did not arrive.
    progress.possiblyKnownThrough = progress.lastSent
    if PlantedSyncBug.isOn(.batchLostByRename) { inFlight = nil }
    resendBatch()
  }

  /// Drops the batch in flight; its changes are pending again.
  mutating func resendBatch() {
    outbox.resend(sequencesInFlight)
    inFlight = nil
  }
}
