internal import Tidemark
internal import TidemarkEngine
internal import TidemarkSyncProtocol

extension SyncSession {
  /// Handles a page of the feed: commits its entries, conflicts and the new cursor together.
  func handle(_ page: PullAnswer) throws {
    guard page.cursor.offset >= progress.cursor.offset else {
      throw PeerError(.malformed, "the feed's cursor went back")
    }
    guard page.cursor != progress.cursor || !page.entries.isEmpty else { return }
    lastMark = (page.mark.number, page.mark.batchID, page.range.head)
    if page.entries.contains(where: isForeign) {
      // A copy of this store writes under the same replica id.
      return try rename()
    }
    // Only the last of several entries of a key in one page is the key's state.
    let own = try ownChanges(of: page)
    let last = Dictionary(
      page.entries.indices.filter { page.entries[$0].kind != .own || own[$0] != nil }
        .map { (own[$0]?.change.key ?? page.entries[$0].key, $0) }
    ) { $1 }
    if PlantedSyncBug.isOn(.cursorBeforeData) {
      try commit { tx in tx.progress.cursor = page.cursor }
    }
    let named = try aliasChanges(of: page)
    try commit(aliases: named, arriving: Set(last.keys)) { tx in
      tx.progress.cursor = page.cursor
      tx.progress.resumption = page.resumption
      // Echoes come first: the resolver must not see a change as pending that the feed has.
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
          // The conflict is now with the version that is out of the scope.
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
  /// An echo of an own change, and whether its verdict was known before.
  fileprivate typealias Returned = (change: LoggedChange, hadVerdict: Bool)

  /// The echoes of a page by their index, at peers whose feed gives them other positions than the
  /// verdicts did: changes of other replicas may lie between.
  fileprivate func ownChanges(of page: PullAnswer) throws(TidemarkError) -> [Int: Returned] {
    guard !capabilities.isNumbered else { return [:] }
    var changes: [Int: Returned] = [:]
    for (index, entry) in page.entries.enumerated() where entry.kind == .own {
      guard let change = try log.change(at: entry.operation.sequence) else { continue }
      changes[index] = (change, position(of: change) != nil)
    }
    return changes
  }

  /// Whether this store has the entry already, or a later one of its key.
  fileprivate func isKnown(_ entry: FeedEntry) throws(TidemarkError) -> Bool {
    guard let newest = try log.newestChange(ofKey: entry.key) else {
      // An own delete may be gone from this log; only the comparison has seen that the key is.
      return entry.position.offset <= progress.comparedThrough.offset
    }
    // A change that was never sent hides an own change below it that the feed has.
    let known =
      isUnheard(newest)
      ? try knownRemote(ofKey: entry.key, from: newest)
      : try reflectedRemote(ofKey: entry.key, newest: newest)
    return known.map { $0.position.offset >= entry.position.offset } ?? false
  }

  /// Whether an entry has this store's replica id, and is neither acknowledged nor in flight: a
  /// copy of the store wrote it.
  ///
  /// Entries up to a mark that is known are this store's: it takes a new id before it sends to a
  /// feed that has another store's batch under the old one.
  func isForeign(_ entry: FeedEntry) -> Bool {
    guard capabilities.isNumbered, entry.operation.replica == replica else { return false }
    let mark = session.lastMark
    if entry.position.offset <= mark.head, isOurs(mark.number, mark.batch) { return false }
    let sequence = entry.operation.sequence
    return settled.position(of: sequence) != entry.position
      && !sequencesInFlight.contains(sequence)
  }

  /// The sequence of the own change that an entry echoes, also under a former replica id; nil for
  /// changes of others.
  func ownSequence(of entry: FeedEntry) throws(TidemarkError) -> UInt64? {
    if entry.kind == .own || entry.operation.replica == replica {
      return entry.operation.sequence
    }
    // Only a change that the feed had lost can be there under another replica id.
    guard progress.heardThrough > 0, entry.kind != .left else { return nil }
    return try pending(in: entry)
  }

  /// The pending change that equals an entry of another replica: this store sent it under a former
  /// id, or the feed had lost it and another replica brought it back. Later versions in the feed
  /// are based upon it. Its commit time tells it from others with the same content.
  fileprivate func pending(in entry: FeedEntry) throws(TidemarkError) -> UInt64? {
    var version = try log.newestChange(ofKey: entry.key)
    while let change = version, position(of: change) == nil {
      if isPending(change), change.sequence <= progress.heardThrough || change.isBroughtBack,
        change.commitTime == entry.commitTime,
        change.kind == (entry.kind == .put ? .put : .delete),
        try log.content(of: change) == entry.content
      {
        return change.sequence
      }
      version = try log.change(at: change.previous)
    }
    return nil
  }

  /// Whether changes that a restored feed had lost are pending or in flight: a later copy of the
  /// feed may have them, and changes based upon them.
  var bringsBackLost: Bool {
    outbox.pending.first.map { $0 <= progress.heardThrough } ?? false
      || batchInFlight.map(isHeardOf) ?? false
  }
}

extension SyncTransaction {
  /// Restores the value of an own change that the feed has behind a change of another replica, or
  /// behind a later own one: a copy of this store has sent it.
  fileprivate mutating func restoreOwn(_ own: Returned, at place: Position) throws {
    let change = own.change
    guard let newest = try log.newestChange(ofKey: change.key), newest.sequence > change.sequence,
      newest.attributes.origin != nil || !own.hadVerdict, !isPending(newest),
      let other = position(of: newest), other.offset < place.offset
    else { return }
    try merge(change.key, remoteState(of: change, at: place))
  }

  /// An echo acknowledges an own change, also if the answer to its batch was lost with the mark.
  mutating func acknowledge(_ sequence: UInt64, at position: Position) throws(TidemarkError) {
    guard !sequencesInFlight.contains(sequence) else { return }
    // A conflict or rejection of it is over: this feed has applied it.
    let hasWaited = outbox.waiting[sequence] != nil
    let wasPending = outbox.pending.contains(sequence)
    // A copy of this store may have sent what is not in this log.
    if sequence <= log.head { outbox.decide(sequence) }
    if hasWaited || wasPending && sequence <= progress.heardThrough { compareReach() }
    settled.add(sequence, at: position)
    // A newer delete, or put out of scope, was not worth sending while the feed did not have this
    // change. Now it is.
    guard progress.heardThrough > 0 || !capabilities.isNumbered,
      let change = try log.change(at: sequence),
      let newest = try log.newestChange(ofKey: change.key), newest.sequence > sequence,
      newest.isOwn, !isPending(newest), settled.position(of: newest.sequence) == nil
    else { return }
    outbox.resend(newest.sequence)
  }

  /// Asks for a comparison: a change that the feed has again was pending during the last one, which
  /// therefore kept it even if it is out of the authorization's reach.
  mutating func compareReach() {
    guard capabilities.hasDigest, progress.reach != 0, progress.resync?.compares != true else {
      return
    }
    var resync = progress.resync ?? Resync()
    resync.compares = true
    resync.seenThrough = progress.cursor.offset
    resync.keepsCursor = progress.readsAgain || bringsBackLost
    resync.evict()
    progress.resync = resync
  }

  /// Evicts a key that has left the scope, unless a change of it is pending or a cache owns it.
  mutating func purge(_ entry: FeedEntry) throws(TidemarkError) {
    guard let slot = try log.slot(ofKey: entry.key), !slot.isDeleted,
      let newest = try log.newestChange(ofKey: entry.key), !isPending(newest),
      !isUnheard(newest), newest.attributes.entryClass == .owned
    else { return }
    try operations.evict(entry, upon: slot)
    // The remote state beside it would keep a second copy of the value.
    try forgetRemote(ofKey: entry.key)
  }
}
