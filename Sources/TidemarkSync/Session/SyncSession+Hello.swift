internal import Tidemark
internal import TidemarkEngine
internal import TidemarkSyncProtocol

extension SyncSession {
  /// Compares what the peer says of itself with what this store knows of it.
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
      // A batch sent to the old feed may arrive late, and its number fit here: nothing is sent to
      // this one under the same name. The name comes first, as after a restart.
      let wasHeard = progress.feed != nil && (progress.number > 0 || batchInFlight != nil)
      if wasHeard { try log.changeReplica() }
      try beginAnew(with: answer)
      // The peer takes a cursor of another feed for one of its own that was left alone for long. As
      // a newcomer we read what it holds from the beginning, deletes included.
      if isElsewhere || wasHeard { return disconnect() }
    } else if !holdsWhatIsKnown(answer.range) {
      try rewind(to: answer)
      // It goes on under a new name.
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

  /// Forgets where own operations stand that compaction has dropped from the log: nothing is based
  /// upon them any more. Those that the cursor has not passed come once more.
  private func pruneSettled() throws {
    let history = try log.historyStart()
    guard history > prunedHistory, progress.resync == nil else { return }
    prunedHistory = history
    let unread = settled.firstUnread(after: progress.cursor.offset) ?? .max
    // Two versions of a live key may be asked for: its newest, and the base of a pending one.
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

  /// The remote is new to us, or was made anew: all that is owned is pending, nothing is purged.
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
      // A feed that has batches under our name already makes us draw another: whoever sent them,
      // this store does not know of it.
      next.scope = Self.fingerprint(of: scope)
      next.reach = answer.reach ?? 0
      // Entries of the old remote are ours to bring now. Where a feed was restored after it was
      // made anew, positions of the old one look like its own: only a comparison tells.
      if hadPeer {
        next.heardThrough = progress.lastSent
        next.resync = Resync(
          adopts: true, compares: capabilities.hasDigest, keepsCursor: capabilities.hasDigest)
      }
      tx.progress = next
      tx.settled.removeAll()
    }
  }

  /// The peer was restored from a backup: what it had taken since is pending again, and what
  /// others had brought it we bring back.
  private func rewind(to answer: HelloAnswer) throws {
    let common = min(
      progress.cursor.offset,
      answer.range.lastCommonOffset(with: progress.knownRange)
        ?? answer.range.lastCommonOffset(with: progress.cursor) ?? 0)
    // A batch that was under way may arrive late, and its number fit here again: under the old name
    // nothing more is sent, and what the backup has of it comes with the feed. The name comes
    // first: once the rest is written down a restart would find nothing amiss.
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
      // A delete of what was not there has no place in the feed; a later copy may have its key.
      for sequence in tx.settled.removeLost({ $0 != .beginning && answer.range.contains($0) }) {
        if PlantedSyncBug.isOn(.lostNotSentAgain) { continue }
        tx.outbox.resend(sequence)
        // Where it stands upon one that never went, whose place it took, what both were made upon
        // is not kept for it.
        if let change = try log.change(at: sequence),
          let below = try log.change(at: change.previous), below.isOwn,
          former.position(of: below.sequence) == nil
        {
          try tx.keepBase(of: change)
        }
      }
      // The versions that changes are in conflict with may be gone: they are sent again.
      for (sequence, reason) in tx.outbox.waiting where reason.position != nil {
        tx.outbox.resend(sequence)
      }
      tx.progress.resync = Resync(
        adopts: true, compares: capabilities.hasDigest, seenThrough: common,
        keepsCursor: true, evicts: tx.progress.resync?.evicts ?? false)
    }
    // What is to be sent again was looked through for priorities before.
    deferred = DeferredChanges()
    // The next call is a hello under the new name.
    disconnect()
  }

  /// Whether the authorization reaches other entries than when the cursor was written down.
  private func isOfAnotherReach(_ answer: HelloAnswer) -> Bool {
    if PlantedSyncBug.isOn(.reachIgnored) { return false }
    return answer.reach.map { $0 != progress.reach } ?? false
  }

  /// Another scope than the one that the cursor speaks of, or another reach: what it has in
  /// addition lies before the cursor, too, and what it lacks nobody will tell of.
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

  /// Own changes that nobody has heard of since they lay outside of the scope, and do no more.
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

  /// A peer that counts our batches differently than we do.
  private func compareMarks(_ mark: ReplicaMark) throws {
    if mark.number == progress.number, mark.batchID == progress.batchID { return }
    if PlantedSyncBug.isOn(.cloneNotNoticed) {
      return try commit { $0.progress.count(mark.number, mark.batchID) }
    }
    // It has forgotten the batches, whose entries it kept.
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

  /// Goes on under a new name; what was written under the old one by somebody else comes as his.
  func rename() throws {
    try log.changeReplica()
    try commit { tx in tx.adoptName() }
    // The peer will take a store that has read nothing for one that holds nothing.
    if progress.cursor == .beginning, !settled.isEmpty { try beginResync(seenThrough: 0) }
    // The next call is a hello under the new name.
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
  /// Counts batches anew where the store has another name than it had for the peer: also where it
  /// ended before that was written down, or was renamed for another peer.
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

  /// The batch under way is not any more, and its changes are to be sent again.
  mutating func resendBatch() {
    outbox.resend(sequencesInFlight)
    inFlight = nil
  }
}
