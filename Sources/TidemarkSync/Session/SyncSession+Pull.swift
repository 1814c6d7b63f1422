internal import Tidemark
internal import TidemarkEngine
internal import TidemarkSyncProtocol

extension SyncSession {
  /// Handles a page of the feed: commits its entries, conflicts and the new cursor in one batch.
  func handle(_ page: PullAnswer) throws {
    guard page.cursor.offset >= progress.cursor.offset else {
      throw PeerError(.malformed, "the feed's cursor went back")
    }
    guard page.cursor != progress.cursor || !page.entries.isEmpty else { return }
    lastMark = (page.mark.number, page.mark.batchID, page.range.head)
    if page.entries.contains(where: isForeign) {
      // A copy of this store has written under the same replica id.
      return try rename()
    }
    // Only the last of several entries of a key in one page is the key's state.
    let own = try ownChanges(of: page)
    let last = Dictionary(
      page.entries.indices.filter { page.entries[$0].kind != .own || own[$0] != nil }
        .map { (own[$0]?.change.key ?? page.entries[$0].key, $0) }
    ) { $1 }
    if PlantedSyncBug.isOn(.cursorBeforeData) {  // A fault that only tests switch on.
      try commit { tx in tx.progress.cursor = page.cursor }
    }
    let named = try aliasChanges(of: page)
    try commit(aliases: named, arriving: Set(last.keys)) { tx in
      tx.progress.cursor = page.cursor
      tx.progress.resumption = page.resumption
      // Own entries first: the resolver must not see a change as pending that the feed has.
      for entry in page.entries {
        guard let sequence = try tx.ownSequence(of: entry), try !tx.staysRefused(sequence, named)
        else { continue }
        try tx.acknowledge(sequence, at: entry.position)
      }
      for (index, returned) in own where last[returned.change.key] == index {
        try tx.restoreOwn(returned, at: page.entries[index].position)
      }
      for (index, entry) in page.entries.enumerated() where entry.kind != .own {
        guard last[entry.key] == index, try !tx.isKnown(entry) else { continue }
        if entry.kind == .left {
          // A waiting conflict is now with this later version, which is out of the scope.
          if let waiting = tx.outbox.waiting.entry(ofKey: entry.key),
            let position = waiting.reason.position, position.offset < entry.position.offset,
            let change = try log.change(at: waiting.sequence)
          {
            tx.outbox.wait(change, for: waiting.reason.at(entry.position))
          }
          try tx.purge(entry)
        } else {
          try tx.merge(entry.key, tx.remoteState(entry))
        }
      }
    }
    totals.pulled += page.entries.count { $0.kind != .own }
    try resolveWaiting()
  }
}

extension PeerView {
  /// An own change that the feed returns, and whether its verdict was known before.
  fileprivate typealias Returned = (change: LoggedChange, hadVerdict: Bool)

  /// The own changes that a page returns, by index, at peers without numbered batches, which may
  /// count a batch twice that was sent again: their positions may be later than the verdicts'.
  fileprivate func ownChanges(of page: PullAnswer) throws(TidemarkError) -> [Int: Returned] {
    guard !capabilities.isNumbered else { return [:] }
    var changes: [Int: Returned] = [:]
    for (index, entry) in page.entries.enumerated() where entry.kind == .own {
      guard let change = try log.change(at: entry.operation.sequence) else { continue }
      changes[index] = (change, position(of: change) != nil)
    }
    return changes
  }

  /// Whether this store has already applied the entry, or a later one of its key.
  fileprivate func isKnown(_ entry: FeedEntry) throws(TidemarkError) -> Bool {
    guard let newest = try log.newestChange(ofKey: entry.key) else {
      // Compaction may have dropped an own delete; the comparison saw that the key is gone.
      return entry.position.offset <= progress.comparedThrough.offset
    }
    // Below a put that was never sent there may be an own version that the feed has.
    let known =
      isUnsentPut(newest)
      ? try knownRemote(ofKey: entry.key, from: newest)
      : try reflectedRemote(ofKey: entry.key, newest: newest)
    return known.map { $0.position.offset >= entry.position.offset } ?? false
  }

  /// Whether an entry has this store's replica id, and is neither acknowledged nor in flight: a
  /// copy of the store wrote it.
  ///
  /// Entries up to a mark of one of its own batches are this store's: it takes a new id before it
  /// sends to a feed whose mark under the old id is another store's.
  func isForeign(_ entry: FeedEntry) -> Bool {
    guard capabilities.isNumbered, entry.operation.replica == replica else { return false }
    let mark = session.lastMark
    if entry.position.offset <= mark.head, isOurs(mark.number, mark.batch) { return false }
    let sequence = entry.operation.sequence
    return acknowledged.position(of: sequence) != entry.position
      && !sequencesInFlight.contains(sequence)
  }

  /// The own change that an entry returns, also under a previous replica id; nil for another's.
  func ownSequence(of entry: FeedEntry) throws(TidemarkError) -> UInt64? {
    if entry.kind == .own || entry.operation.replica == replica {
      return entry.operation.sequence
    }
    // Own changes are under another id only after a restore or a change of id: only then the peer
    // may have some that are not known to be there (`possiblyKnownThrough`).
    guard progress.possiblyKnownThrough > 0, entry.kind != .left else { return nil }
    return try pending(in: entry)
  }

  /// The pending change that equals an entry of another replica: this store sent it under a
  /// previous id, or the feed had lost it and another replica adopted it (`isBroughtBack`). Later
  /// versions in the feed are based upon it. The commit time tells it from others of same content.
  fileprivate func pending(in entry: FeedEntry) throws(TidemarkError) -> UInt64? {
    for change in try versions(from: log.newestChange(ofKey: entry.key)).lacking
    where isPending(change) && change.commitTime == entry.commitTime
      && change.kind == (entry.kind == .put ? .put : .delete)
    {
      let mayBeIts = change.sequence <= progress.possiblyKnownThrough || change.isBroughtBack
      if mayBeIts, try log.content(of: change) == entry.content { return change.sequence }
    }
    return nil
  }

  /// Whether changes that a restored feed had lost are pending or in flight: a later backup of the
  /// feed may have them, and changes based upon them.
  var bringsBackLost: Bool {
    outbox.pending.first.map { $0 <= progress.possiblyKnownThrough } ?? false
      || batchInFlight.map(hasLostChanges) ?? false
  }
}

extension SyncTransaction {
  /// Restores the value of an own change that the feed has after a newer version of the key here: a
  /// copy of this store has sent it.
  fileprivate mutating func restoreOwn(_ own: Returned, at place: FeedPosition) throws {
    let change = own.change
    guard let newest = try log.newestChange(ofKey: change.key), newest.sequence > change.sequence,
      newest.attributes.origin != nil || !own.hadVerdict, !isPending(newest),
      let other = position(of: newest), other.offset < place.offset
    else { return }
    try merge(change.key, remoteState(of: change, at: place))
  }

  /// Counts an own change as applied since the feed returned it: its verdict may be lost.
  mutating func acknowledge(_ sequence: UInt64, at position: FeedPosition) throws(TidemarkError) {
    guard !sequencesInFlight.contains(sequence) else { return }
    // A conflict or rejection of the change is over: this feed has applied it.
    let hasWaited = outbox.waiting[sequence] != nil
    let wasPending = outbox.pending.contains(sequence)
    // Above the head: a copy of this store has sent it.
    if sequence <= log.head { outbox.decide(sequence) }
    if hasWaited || wasPending && sequence <= progress.possiblyKnownThrough { compareReach() }
    acknowledged.add(sequence, at: position)
    // A newer delete, or put out of scope, was not needed while the feed lacked this change.
    guard progress.possiblyKnownThrough > 0 || !capabilities.isNumbered,
      let change = try log.change(at: sequence),
      let newest = try log.newestChange(ofKey: change.key), newest.sequence > sequence,
      newest.isOwn, !isPending(newest), acknowledged.position(of: newest.sequence) == nil
    else { return }
    outbox.resend(newest.sequence)
  }

  /// Asks for a comparison by digest: the last one kept this change since it was pending then; the
  /// authorization may not cover it, and the feed has it again.
  mutating func compareReach() {
    guard capabilities.hasDigest, progress.reach != 0, progress.resync?.compares != true else {
      return
    }
    var resync = progress.resync ?? Resync()
    resync.compares = true
    resync.seenThrough = progress.cursor.offset
    resync.keepsCursor = progress.isRereading || bringsBackLost
    resync.evict()
    progress.resync = resync
  }

  /// Evicts a key that has left the scope, unless it is cached or a change of it is pending.
  mutating func purge(_ entry: FeedEntry) throws(TidemarkError) {
    guard let slot = try log.slot(ofKey: entry.key), !slot.isDeleted,
      let newest = try log.newestChange(ofKey: entry.key), !isPending(newest),
      !isUnsentPut(newest), newest.attributes.entryClass == .owned
    else { return }
    try operations.evict(entry, upon: slot)
    // The remote state beside it would keep a second copy of the value.
    try forgetRemote(ofKey: entry.key)
  }
}
