internal import Tidemark
internal import TidemarkEngine
internal import TidemarkSyncProtocol

extension SyncSession {
  /// Handles a hello: compares the peer's feed, mark and reach with what this store knows.
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
      let isElsewhere = progress.cursor != .beginning
      // A late batch to the old feed may fit the numbers of this one, so this store takes a new
      // replica id, and does so first: a crash in between must not lose it.
      let wasHeard = progress.feed != nil && (progress.number > 0 || batchInFlight != nil)
      if wasHeard { try log.changeReplica() }
      try beginAnew(with: answer)
      // The peer takes a cursor of another feed for one of its own that was left alone for long. As
      // a newcomer we read what it holds from the beginning, deletes included.
      if isElsewhere || wasHeard { return disconnect() }
    } else if !holdsWhatIsKnown(answer.range) {
      try rewind(to: answer)
      // A hello under the new replica id follows.
      guard range != nil else { return }
    }
    try settle(answer.mark)
    try compareMarks(answer.mark)
    guard range != nil else { return }
    if answer.isLeaseExpired {
      try beginResync(seenThrough: progress.cursor.offset)
    }
    if progress.scope != Self.fingerprint(of: scope) || isOfAnotherReach(answer) {
      try changeScope(answer)
    }
    if hasCompared, progress.resync == nil { totals.resyncs += 1 }
    try pruneSettled()
  }

  /// Forgets the positions of own changes that compaction has dropped: nothing is based upon them.
  /// Those behind the cursor stay, since the feed will echo them.
  private func pruneSettled() throws {
    let history = try log.historyStart()
    guard history > prunedHistory, progress.resync == nil else { return }
    prunedHistory = history
    let unread = settled.firstUnread(after: progress.cursor.offset) ?? .max
    // Two versions of a live key are asked for: its newest, and the base of a pending one.
    let least = 2 * log.liveKeys + Self.runsUnpruned
    let kept = try settled.pruned(above: least) { run in
      // A long run takes no more than a short one, and more to look through.
      try run.last >= min(history, unread) || run.count > Self.mostInShortRun
        || run.sequences.contains { try log.change(at: $0) != nil }
    }
    guard let kept else { return }
    try commit(.buffered) { tx in tx.settled.replaceAll(with: kept) }
  }

  private static let mostInShortRun: UInt64 = 64
  private static let runsUnpruned = 64

  /// Begins with a new or recreated feed: all owned entries are pending, and nothing is purged.
  private func beginAnew(with answer: HelloAnswer) throws {
    let hadPeer = progress.feed != nil
    comparing = nil
    let aliases = try knownAliases()
    let named = aliases.all.compactMap { aliases.key(ofAlias: $0)?.bytes }
    try commit(aliases: aliasChanges(ofAbsent: named)) { tx in
      tx.inFlight = nil
      var next = PeerProgress()
      next.outbox = outbox
      next.outbox.removeAll()
      next.renamedThrough = progress.renamedThrough
      next.name = replica
      next.feed = answer.feed
      if PlantedSyncBug.isOn(.markOfAnotherTaken) {
        next.count(answer.mark.number, answer.mark.batchID)
      }
      // If the feed has batches under this replica id, `compareMarks` takes another one.
      next.scope = Self.fingerprint(of: scope)
      next.reach = answer.reach ?? 0
      // This store brings entries of the old feed to the new one. Only a comparison tells them
      // apart where a recreated feed was restored, and has the same positions.
      if hadPeer {
        next.heardThrough = progress.lastSent
        next.resync = Resync(
          adopts: true, compares: capabilities.hasDigest, keepsCursor: capabilities.hasDigest)
      }
      tx.progress = next
      tx.settled.removeAll()
    }
  }

  /// Rewinds to the last common position with a feed that was restored from a backup: own changes
  /// behind it are pending again, and this store brings back those of others.
  private func rewind(to answer: HelloAnswer) throws {
    let common = min(
      progress.cursor.offset,
      answer.range.lastCommonOffset(with: progress.knownRange)
        ?? answer.range.lastCommonOffset(with: progress.cursor) ?? 0)
    // A late batch may fit the numbers of the restored feed, so this store takes a new replica id;
    // what the backup has of the batch is pulled. The id comes first: after a crash in between
    // the next hello still finds the feed restored.
    if !PlantedSyncBug.isOn(.lateBatchForgotten) { try log.changeReplica() }
    comparing = nil
    try commit { tx in
      tx.progress.cursor = answer.range.position(ofOffset: common)
      tx.progress.resumption = []
      tx.progress.heardThrough = tx.progress.lastSent
      tx.progress.comparedThrough = .beginning
      tx.settled.findUnread(after: common)
      tx.adoptName()
      if PlantedSyncBug.isOn(.lateBatchForgotten) {
        tx.resendBatch()
        tx.progress.count(answer.mark.number, answer.mark.batchID)
      }
      let former = tx.settled
      // A delete of what the feed did not have got no position; a later copy may have the key.
      for sequence in tx.settled.removeLost({ $0 != .beginning && answer.range.contains($0) }) {
        if PlantedSyncBug.isOn(.lostNotSentAgain) { continue }
        tx.outbox.resend(sequence)
        // Compaction does not keep its base where it replaced a change that was never sent.
        if let change = try log.change(at: sequence),
          let below = try log.change(at: change.previous), below.isOwn,
          former.position(of: below.sequence) == nil
        {
          try tx.keepBase(of: change)
        }
      }
      // The feed may have lost the versions that these are in conflict with.
      for (sequence, reason) in tx.outbox.waiting where reason.position != nil {
        tx.outbox.resend(sequence)
      }
      tx.progress.resync = Resync(
        adopts: true, compares: capabilities.hasDigest, seenThrough: common,
        keepsCursor: true, evicts: tx.progress.resync?.evicts ?? false)
    }
    // Urgent changes that are pending again have to be found again.
    deferred = DeferredChanges()
    // The next call is a hello under the new replica id.
    disconnect()
  }

  /// Whether the authorization reaches other entries than when the cursor was written down.
  private func isOfAnotherReach(_ answer: HelloAnswer) -> Bool {
    if PlantedSyncBug.isOn(.reachIgnored) { return false }
    return answer.reach.map { $0 != progress.reach } ?? false
  }

  /// Adopts another scope or reach: entries that are new within it may lie before the cursor, and
  /// the feed does not tell of those that it lacks, so everything is compared.
  private func changeScope(_ answer: HelloAnswer) throws {
    let isOfAnotherReach = isOfAnotherReach(answer)
    // Own changes may be in the feed although nothing of it was read yet.
    let isFirst = progress.cursor == .beginning && (!isOfAnotherReach || settled.isEmpty)
    if !isFirst { try beginResync(seenThrough: 0) }
    let passed = try passedOver()
    let refused = isOfAnotherReach ? try refusedForReach() : []
    try commit { tx in
      tx.progress.scope = Self.fingerprint(of: scope)
      tx.progress.reach = answer.reach ?? tx.progress.reach
      // Keys that lie within it now were not compared.
      tx.progress.comparedThrough = .beginning
      // Keys that lay outside may have been lost there meanwhile, by a peer that was restored.
      tx.progress.resync = tx.progress.resync ?? Resync()
      tx.progress.resync?.adopts = true
      if isOfAnotherReach || tx.progress.reach != 0 { tx.progress.resync?.evict() }
      for sequence in passed + refused { tx.outbox.resend(sequence) }
    }
  }

  /// Changes that were refused since the authorization did not reach them, with what was given up
  /// since it was to apply together with them: another reach may be the right one.
  private func refusedForReach() throws(TidemarkError) -> [UInt64] {
    var found: [UInt64] = []
    for entry in outbox.waiting.entries.values where entry.reason.code == Rejection.outOfReach {
      found.append(entry.sequence)
      guard entry.isOfGroup, let change = try log.change(at: entry.sequence) else { continue }
      for member in try log.atomicGroup(of: change)
      where outbox.waiting[member.sequence]?.code == Rejection.ofGroup {
        found.append(member.sequence)
      }
    }
    return found
  }

  /// Own changes that were not sent since they were out of the scope, and are within it now.
  private func passedOver() throws(TidemarkError) -> [UInt64] {
    if PlantedSyncBug.isOn(.outsideForgotten) { return [] }
    var passed: [UInt64] = []
    var cursor = log.entries(from: 1, through: log.head)
    while let entry = try cursor.next() {
      guard entry.head.kind == .put else { continue }
      let change = try LoggedChange(entry)
      // Where a pending one was made upon it, what both were made upon stays for that.
      guard isUnheard(change), !isPending(change),
        let newest = try log.newestChange(ofKey: change.key),
        newest.sequence == change.sequence || isPending(newest), try isWithin(newest)
      else { continue }
      passed.append(change.sequence)
    }
    return passed
  }

  /// Stands for a scope; 0 for everything.
  static func fingerprint(of scope: SyncScope) -> UInt64 {
    scope.isEverything ? 0 : scope.hash(seed: 1)
  }

  /// Handles a mark that is not that of the last batch.
  private func compareMarks(_ mark: ReplicaMark) throws {
    if mark.number == progress.number, mark.batchID == progress.batchID { return }
    if PlantedSyncBug.isOn(.cloneNotNoticed) {
      return try commit { $0.progress.count(mark.number, mark.batchID) }
    }
    // The peer has lost its mark and kept the entries.
    if mark.number == 0 {
      return try commit { tx in
        tx.resendBatch()
        tx.progress.count(0, .none)
      }
    }
    // Batches under our name that are not ours: this store is a copy of another, or was restored
    // from a backup. It goes on under a new name; what the other one sent comes as somebody
    // else's.
    try rename()
  }

  /// Takes a new replica id: entries that a copy wrote under the old one are those of another.
  func rename() throws {
    try log.changeReplica()
    try commit { tx in tx.adoptName() }
    // The peer takes a store that has read nothing for an empty one, and keeps no deletes for it.
    if progress.cursor == .beginning, !settled.isEmpty { try beginResync(seenThrough: 0) }
    // The next call is a hello under the new replica id.
    disconnect()
  }
}

extension PeerView {
  /// Whether a batch is the one under way, or the last of this store that the peer has answered.
  func isOurs(_ number: UInt64, _ id: BatchID) -> Bool {
    if number == progress.number { return number > 0 && id == progress.batchID }
    guard let batch = batchInFlight, number == batch.number else { return false }
    return id == batch.batchID || id == batch.batchID.ofEmpty
  }
}

extension SyncTransaction {
  /// Numbers batches from 1 if the store's replica id has changed since the last commit for this
  /// peer: before a crash, or for the sake of another peer.
  mutating func adoptName() {
    guard progress.name != replica else { return }
    let isFirst = progress.name == .none
    progress.name = replica
    if isFirst { return }
    progress.count(0, .none)
    progress.renamedThrough = log.head
    // The feed may hold changes under the former name whose verdicts are not known here.
    progress.heardThrough = progress.lastSent
    if PlantedSyncBug.isOn(.batchLostByRename) { inFlight = nil }
    resendBatch()
  }

  /// Drops the batch in flight; its changes are pending again.
  mutating func resendBatch() {
    outbox.resend(sequencesInFlight)
    inFlight = nil
  }
}
