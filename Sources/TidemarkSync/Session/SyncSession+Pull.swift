internal import Tidemark
internal import TidemarkEngine
internal import TidemarkSyncProtocol

extension SyncSession {
  /// Takes a page of the feed: entries, conflicts and the new cursor in one batch.
  func handle(_ page: PullAnswer) throws {
    guard page.cursor.offset >= progress.cursor.offset else {
      throw PeerError(.malformed, "the feed's cursor went back")
    }
    guard page.cursor != progress.cursor || !page.entries.isEmpty else { return }
    lastMark = (page.mark.number, page.mark.batchID, page.range.head)
    if page.entries.contains(where: isForeign) {
      // Written under our name, and not by us: this store is a copy of another.
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
      // First of all, so that nothing counts as pending, and is resolved, that is in the feed.
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
          // A change waits for what stands there now, not for what was within the scope.
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
  /// An own change that the feed gives back, and whether a verdict on it was known.
  fileprivate typealias Returned = (change: LoggedChange, hadVerdict: Bool)

  /// The own changes of a page by their place in it, where the feed gives them other positions than
  /// their verdicts did: others' may lie between.
  fileprivate func ownChanges(of page: PullAnswer) throws(TidemarkError) -> [Int: Returned] {
    guard !capabilities.isNumbered else { return [:] }
    var changes: [Int: Returned] = [:]
    for (index, entry) in page.entries.enumerated() where entry.kind == .own {
      guard let change = try log.change(at: entry.operation.sequence) else { continue }
      changes[index] = (change, position(of: change) != nil)
    }
    return changes
  }

  /// Whether an entry, or a later one of its key, has come before.
  fileprivate func isKnown(_ entry: FeedEntry) throws(TidemarkError) -> Bool {
    guard let newest = try log.newestChange(ofKey: entry.key) else {
      // Its delete may be an own one that is gone from this log: then nothing tells of it but the
      // comparison.
      return entry.position.offset <= progress.comparedThrough.offset
    }
    // A change that never went hides an own change below it that stands there, and for longer.
    let known =
      isUnheard(newest)
      ? try knownRemote(ofKey: entry.key, from: newest)
      : try reflectedRemote(ofKey: entry.key, newest: newest)
    return known.map { $0.position.offset >= entry.position.offset } ?? false
  }

  /// Whether an entry bears our name, and neither counts as settled nor is under way.
  ///
  /// In a life of the feed whose last batch under our name is known all up to there are ours: a
  /// store that meets another's batch under its name goes on under a new one before it sends, and
  /// so it does where the feed has become another one.
  func isForeign(_ entry: FeedEntry) -> Bool {
    guard capabilities.isNumbered, entry.operation.replica == replica else { return false }
    let mark = session.lastMark
    if entry.position.offset <= mark.head, isOurs(mark.number, mark.batch) { return false }
    let sequence = entry.operation.sequence
    return settled.position(of: sequence) != entry.position
      && !sequencesInFlight.contains(sequence)
  }

  /// The own change that an entry is, also under another name: nil for what is somebody else's.
  func ownSequence(of entry: FeedEntry) throws(TidemarkError) -> UInt64? {
    if entry.kind == .own || entry.operation.replica == replica {
      return entry.operation.sequence
    }
    // Only what the peer has lost can be there under another name.
    guard progress.heardThrough > 0, entry.kind != .left else { return nil }
    return try pending(in: entry)
  }

  /// The pending change that somebody else's entry is: an own one that went there under a former
  /// name, or one that the peer had lost and another has brought back, or this store would. What
  /// stands behind it there was made upon it. It keeps the time at which it was made.
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

  /// Whether changes that a restored peer had lost are yet to come to it, or under way: a later
  /// copy may have them, and what stands behind them there.
  var bringsBackLost: Bool {
    outbox.pending.first.map { $0 <= progress.heardThrough } ?? false
      || batchInFlight.map(isHeardOf) ?? false
  }
}

extension SyncTransaction {
  /// Gives a key back what an own change gave it that stands in the feed behind another's, or
  /// behind a later own one: then a copy of this store has sent it.
  fileprivate mutating func restoreOwn(_ own: Returned, at place: Position) throws {
    let change = own.change
    guard let newest = try log.newestChange(ofKey: change.key), newest.sequence > change.sequence,
      newest.attributes.origin != nil || !own.hadVerdict, !isPending(newest),
      let other = position(of: newest), other.offset < place.offset
    else { return }
    try merge(change.key, remoteState(of: change, at: place))
  }

  /// The feed has an operation of ours: that it counts is known now, even if the answer to its
  /// batch was lost and its mark is gone.
  mutating func acknowledge(_ sequence: UInt64, at position: Position) throws(TidemarkError) {
    guard !sequencesInFlight.contains(sequence) else { return }
    // Any conflict it had is over: in this life of the feed it was taken.
    let hasWaited = outbox.waiting[sequence] != nil
    let wasPending = outbox.pending.contains(sequence)
    // A copy of this store may have sent what is not in this log.
    if sequence <= log.head { outbox.decide(sequence) }
    if hasWaited || wasPending && sequence <= progress.heardThrough { compareReach() }
    settled.add(sequence, at: position)
    // A change made upon one that a restored peer had lost, or that a copy of this store has sent,
    // was not worth sending: a delete, or a put that is out of scope. Now it is.
    guard progress.heardThrough > 0 || !capabilities.isNumbered,
      let change = try log.change(at: sequence),
      let newest = try log.newestChange(ofKey: change.key), newest.sequence > sequence,
      newest.isOwn, !isPending(newest), settled.position(of: newest.sequence) == nil
    else { return }
    outbox.resend(newest.sequence)
  }

  /// A change that the peer has again was pending while everything was compared, so that it stayed
  /// here even if the authorization does not reach it any more.
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

  /// A key has left the scope: it goes here, too, unless something is pending on it, or a cache has
  /// it, which has nothing to do with the feed.
  mutating func purge(_ entry: FeedEntry) throws(TidemarkError) {
    guard let slot = try log.slot(ofKey: entry.key), !slot.isDeleted,
      let newest = try log.newestChange(ofKey: entry.key), !isPending(newest),
      !isUnheard(newest), newest.attributes.entryClass == .owned
    else { return }
    try operations.evict(entry, upon: slot)
    // The state that was laid beside it may be the same value once more.
    try forgetRemote(ofKey: entry.key)
  }
}
