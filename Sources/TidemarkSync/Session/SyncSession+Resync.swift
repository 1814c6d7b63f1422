internal import Tidemark
internal import TidemarkEngine
internal import TidemarkSyncProtocol

/// A comparison that is under way. It is not kept: after a crash it begins anew.
struct Comparing {
  var walk = DigestWalk()
  /// The sums of what the feed is known to hold; the rows have the sequences of the keys' newest
  /// versions.
  var table: DigestTable
  /// Keys that were found to differ; their values are asked for once they fill a call.
  var differing: [DigestWalk.Difference] = []
  /// Keys that the feed has lost, with what was known of them.
  var purged: [[UInt8]] = []
  /// Whether the feed has said to hold nothing at all.
  var isEmptyThere = false
}

extension SyncSession {
  /// So many keys may go in one resynchronisation without a question, or a twentieth of all.
  static let purgedUnasked = 100
  /// About how many bytes of keys are asked for at once.
  private static let keyBytesPerCall = 64 << 10

  /// The next call that puts things right; nil when all is done, or the user must decide.
  func nextOfResync() throws -> WireMessage? {
    guard let resync = progress.resync, resync.purge != .undecided else { return nil }
    if resync.adopts { try adoptLost() }
    guard resync.compares else {
      try finishResync(at: nil)
      return nil
    }
    if comparing == nil { comparing = Comparing(table: try knownTable([[]])) }
    guard let now = comparing else { return nil }
    let paths = now.walk.next
    var keys: [[UInt8]] = []
    var bytes = 0
    for found in now.differing.prefix(limits.changes) where bytes < Self.keyBytesPerCall {
      keys.append(found.key)
      bytes += found.key.count
    }
    let isFull = keys.count == limits.changes || bytes >= Self.keyBytesPerCall
    if !keys.isEmpty, isFull || paths.isEmpty { return .valuesRequest(try valuesRequest(keys)) }
    if !paths.isEmpty {
      var request = DigestRequest(replica: replica, scope: scope, paths: paths)
      request.aliases = try knownAliases()
      return .digestRequest(request)
    }
    guard try purge(now.purged) else { return nil }
    try finishResync(at: now.walk.position)
    // The hello tells that everything was compared, which renews the lease.
    range = nil
    return .helloRequest(hello())
  }

  /// Handles the digests of parts.
  func handle(_ answer: DigestAnswer) throws {
    guard var now = comparing, let first = now.walk.next.first else { return }
    if !now.table.answers(first) { now.table = try knownTable(now.walk.next) }
    let earlier = now.walk.comparisons
    if now.walk.position == nil { now.isEmptyThere = answer.parts.first?.total.keys == 0 }
    now.differing += try now.walk.take(answer, now.table) { row in
      try log.change(at: row.offset)?.key
    }
    totals.comparisons += now.walk.comparisons - earlier
    comparing = now
  }

  /// Handles the remote states of differing keys.
  func reconcile(_ answer: ValuesAnswer) throws {
    guard var now = comparing, !now.differing.isEmpty else { return }
    guard answer.answered > 0 else { throw PeerError(.malformed, "no key was answered") }
    if answer.entries.contains(where: isForeign) { return try rename() }
    // Keys that nobody has asked for are not known.
    let keys = Array(keysAsked.prefix(answer.answered))
    keysAsked = []
    guard now.differing.prefix(keys.count).map(\.key) == keys else { return }
    let found = Dictionary(answer.entries.map { ($0.key, $0) }) { $1 }
    var gone: [[UInt8]] = []
    let named = try aliasChanges(of: answer, absent: [])
    try commit(aliases: named, arriving: Set(keys)) { tx in
      gone = []
      for key in keys {
        if let entry = found[key], try tx.acknowledgeAhead(entry) { continue }
        let remote = try found[key].map { try tx.remoteState($0) }
        if try tx.reconcile(key, remote) { gone.append(key) }
      }
    }
    now.differing.removeFirst(keys.count)
    now.purged += gone
    comparing = now
    try resolveWaiting()
  }

  // MARK: Purging

  /// Lets keys go that were deleted in the feed, unless they are suspiciously many.
  /// - Returns: false when the user must decide first.
  private func purge(_ keys: [[UInt8]]) throws -> Bool {
    let resync = progress.resync ?? Resync()
    let isRefused = resync.purge == .refused
    // As many go as were agreed to, and what goes unasked anyway; all of them where the
    // authorization has changed.
    let agreed = resync.purge == .allowed ? min(resync.lostKeys, Slot.maxSequence) : 0
    // An empty list may come from something on the way, so no delete goes without a question.
    let isSuspicious = !capabilities.isNumbered && comparing?.isEmptyThere ?? false
    let unasked = isSuspicious ? 0 : max(Self.purgedUnasked, log.liveKeys / 20)
    let mayPurge = resync.evicts ? .max : unasked + Int(clamping: agreed)
    guard isRefused || keys.count <= mayPurge else {
      try commit { tx in
        tx.progress.resync?.purge = .undecided
        tx.progress.resync?.lostKeys = UInt64(keys.count)
      }
      return false
    }
    for start in stride(from: 0, to: keys.count, by: 256) {
      let part = Array(keys[start..<min(start + 256, keys.count)])
      try commit(aliases: aliasChanges(ofAbsent: part)) { tx in
        for key in part {
          guard let newest = try log.newestChange(ofKey: key) else { continue }
          let entry = tx.gone(newest)
          if isRefused {
            // The key goes back into the feed, which has lost it.
            guard newest.kind == .put, let slot = try log.slot(ofKey: key), !tx.isPending(newest)
            else { continue }
            if let entry { try tx.writeRemote(RemoteState(entry), ofKey: key) }
            try tx.adopt(newest, upon: slot)
          } else if let entry, entry.kind == .left {
            try tx.purge(entry)
          } else if let entry {
            try tx.merge(key, RemoteState(entry))
          }
        }
      }
    }
    return true
  }

  /// How many keys the feed has lost, if the user must decide what becomes of them.
  var undecidedDeletions: Int? {
    guard let resync = progress.resync, resync.purge == .undecided else { return nil }
    return Int(clamping: resync.lostKeys)
  }

  /// The user's word on keys that the feed has lost in great number.
  /// - Parameter isAllowed: whether they go here, too; else they go back into the feed.
  package func decidePurge(_ isAllowed: Bool) throws {
    guard progress.resync?.purge == .undecided else { return }
    try commit { tx in tx.progress.resync?.purge = isAllowed ? .allowed : .refused }
  }

  // MARK: Beginning and end

  /// Compares everything before anything else goes on.
  /// - Parameters:
  ///   - seenThrough: what stands in the feed up to here was taken from it before.
  ///   - canRead: whether the feed can still be read from the cursor on.
  func beginResync(seenThrough: UInt64, canRead: Bool = true) throws {
    comparing = nil
    try commit { tx in
      guard capabilities.hasDigest else {
        // Nothing can be compared: everything is fetched again.
        tx.settled.findUnread(after: 0)
        tx.progress.cursor = .beginning
        tx.progress.resumption = []
        return
      }
      guard tx.progress.resync?.compares != true else { return }
      var resync = tx.progress.resync ?? Resync()
      resync.compares = true
      // Changes of this store that it may have must be found before anything is sent.
      if canRead, tx.progress.readsAgain || bringsBackLost { resync.keepsCursor = true }
      resync.seenThrough = min(seenThrough, tx.progress.resync?.seenThrough ?? seenThrough)
      tx.progress.resync = resync
    }
  }

  private func finishResync(at position: Position?) throws {
    let keepsCursor = progress.resync?.keepsCursor ?? false
    try commit { tx in
      tx.progress.resync = nil
      guard let position else { return }
      let end = keepsCursor ? \PeerProgress.comparedThrough : \.cursor
      tx.progress[keyPath: end] = position
    }
    comparing = nil
    hasCompared = position != nil
  }

  /// The table of what the feed is known to hold: the fingerprints of all keys of parts, of the
  /// first at least.
  func knownTable(_ paths: [[UInt8]]) throws -> DigestTable {
    var table = DigestTable(paths: paths)
    var cursor = log.entries(from: 1, through: log.head)
    while let entry = try cursor.next() {
      guard entry.head.kind == .put || entry.head.kind == .delete else { continue }
      let hash = ContentFingerprint.keyHash(entry.key.rawSpan)
      guard table.covers(hash: hash),
        let newest = try log.newestChange(ofKey: entry.key), newest.sequence == entry.sequence,
        newest.attributes.entryClass == .owned,
        let known = try reflectedRemote(ofKey: entry.key, newest: newest),
        let fingerprint = try fingerprint(of: known, entry.key)
      else { continue }
      table.add(DigestTable.Row(hash: hash, fingerprint: fingerprint, offset: newest.sequence))
    }
    table.finish()
    return table
  }

  /// - Returns: nil for what is deleted or out of scope.
  private func fingerprint(
    of known: KnownRemote, _ key: [UInt8]
  ) throws(TidemarkError) -> ContentFingerprint? {
    guard let labels = known.labels, scope.contains(key: key, labels: labels) else { return nil }
    switch known {
    case .version(let version, _):
      return try log.withValue(of: version) { value in
        ContentFingerprint(
          key: key.rawSpan, value: value, labels: labels.map(\.bytes),
          attachment: version.attributes.attachment)
      }
    case .conflicting(let state):
      let content = state.content
      return ContentFingerprint(
        key: key.rawSpan, value: content.value.rawSpan, labels: labels.map(\.bytes),
        attachment: content.attachment?.engineID)
    }
  }
}

extension SyncTransaction {
  /// - Returns: whether the key is to go here.
  fileprivate mutating func reconcile(_ key: [UInt8], _ remote: RemoteState?) throws -> Bool {
    let newest = try log.newestChange(ofKey: key)
    let known = try reflectedRemote(ofKey: key, newest: newest)
    let isUnsettled = newest.map { isPending($0) } ?? false
    guard let remote else {
      guard known != nil else { return false }
      // The verdict on a change will say whether the key is gone there or only out of reach.
      return !isUnsettled && newest?.kind == .put
    }
    if let known, !known.isEvicted, known.position.offset >= remote.position.offset {
      return false
    }
    if isUnsettled, progress.resync?.keepsCursor ?? false,
      remote.position.offset > progress.cursor.offset
    {
      // The feed is read again from the cursor, and may echo the local change as well.
      return false
    }
    let wasSeen = remote.position.offset <= (progress.resync?.seenThrough ?? 0)
    if isUnsettled, wasSeen {
      // The local change was made upon this version, although the log has lost the link.
      try writeRemote(remote, ofKey: key)
    } else {
      try merge(key, remote)
    }
    return false
  }

  /// A key's version in a feed that was restored, and is read once more, may be an own change:
  /// those made upon it are at odds with nothing that stands before it.
  fileprivate mutating func acknowledgeAhead(_ entry: FeedEntry) throws -> Bool {
    guard progress.resync?.keepsCursor ?? false, entry.position.offset > progress.cursor.offset
    else { return false }
    guard let sequence = try ownSequence(of: entry) else {
      let remote = try remoteState(entry)
      guard let newest = try log.newestChange(ofKey: entry.key), isPending(newest),
        try isDecidedUpon(remote, ofKey: entry.key)
      else { return false }
      try writeRemote(remote, ofKey: entry.key)
      return true
    }
    try acknowledge(sequence, at: entry.position)
    // One that is not in the log, nor anything made upon it, is as good as somebody else's.
    return try log.change(at: sequence) != nil
  }
}

extension PeerView {
  /// A delete, or eviction, for a key that the feed does not show. If the key may only be out of
  /// reach, the entry has its last known position: should it come back, it must not seem older.
  fileprivate func gone(_ newest: LoggedChange) -> FeedEntry? {
    guard progress.reach != 0 || progress.resync?.evicts ?? false else {
      return .nothing(newest.key, at: session.comparing?.walk.position ?? .beginning)
    }
    return position(of: newest).map { .nothing(newest.key, at: $0, .left) }
  }
}
