internal import Tidemark
internal import TidemarkEngine
internal import TidemarkSyncProtocol

/// The state of a comparison by digest, which follows an expired lease, a restored feed or another
/// scope. In memory only: a crash restarts it.
struct Comparing {
  var walk = DigestWalk()
  /// The digests of what the feed is known to hold; a row's offset is its key's newest sequence.
  var table: DigestTable
  /// Keys that differ; their values are requested when they fill a call.
  var differing: [DigestWalk.Difference] = []
  /// Keys that the feed does not have any more.
  var purged: [[UInt8]] = []
  /// Whether the feed has reported no keys at all.
  var isEmptyThere = false
}

extension SyncSession {
  /// How many keys one resync may delete without asking the user, or a twentieth of all.
  static let purgedUnasked = 100
  /// About how many bytes of keys one values request has.
  private static let keyBytesPerCall = 64 << 10

  /// The next call of the resync; nil when it is done, or the user must decide.
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
    // The hello reports the comparison; with the lease the peer keeps deletes for this store again.
    range = nil
    return .helloRequest(hello())
  }

  /// Handles the peer's digests of the requested parts of the key hashes.
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

  /// Handles the values of keys that differ.
  func reconcile(_ answer: ValuesAnswer) throws {
    guard var now = comparing, !now.differing.isEmpty else { return }
    guard answer.answered > 0 else { throw PeerError(.malformed, "no key was answered") }
    if answer.entries.contains(where: isForeign) { return try rename() }
    // Only requested keys count: the absence of others means nothing.
    let keys = Array(requestedKeys.prefix(answer.answered))
    requestedKeys = []
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

  /// Deletes or evicts keys that the feed does not have any more, unless they are too many.
  /// - Returns: false when the user must decide first.
  private func purge(_ keys: [[UInt8]]) throws -> Bool {
    let resync = progress.resync ?? Resync()
    let isRefused = resync.purge == .refused
    // The number that the user has allowed, and those that need no question; all if the
    // authorization has changed.
    let agreed = resync.purge == .allowed ? min(resync.lostKeys, Slot.maxSequence) : 0
    // An empty list may be a proxy's or a back end's fault, so then every delete needs a question.
    let isSuspicious = !capabilities.isNumbered && comparing?.isEmptyThere ?? false
    let unasked = isSuspicious ? 0 : max(Self.purgedUnasked, log.reader.liveKeys / 20)
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
            // The user wants the key back in the feed.
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

  /// How many keys the feed does not have any more, if the user must decide about them; else nil.
  var undecidedDeletions: Int? {
    guard let resync = progress.resync, resync.purge == .undecided else { return nil }
    return Int(clamping: resync.lostKeys)
  }

  /// Records the user's decision on many keys that the feed does not have any more.
  /// - Parameter isAllowed: whether they are deleted here; if not, they are sent to the feed again.
  package func decidePurge(_ isAllowed: Bool) throws {
    guard progress.resync?.purge == .undecided else { return }
    try commit { tx in tx.progress.resync?.purge = isAllowed ? .allowed : .refused }
  }

  // MARK: Beginning and end

  /// Starts a comparison of everything, before which nothing is pushed or pulled.
  /// - Parameters:
  ///   - seenThrough: entries of the feed up to this offset were pulled before.
  ///   - canRead: whether a pull from the cursor is still possible.
  func beginResync(seenThrough: UInt64, canRead: Bool = true) throws {
    comparing = nil
    try commit { tx in
      guard capabilities.hasDigest else {
        // The peer gives no digests: everything is pulled again.
        tx.acknowledged.findUnread(after: 0)
        tx.progress.cursor = .beginning
        tx.progress.resumption = []
        return
      }
      guard tx.progress.resync?.compares != true else { return }
      var resync = tx.progress.resync ?? Resync()
      resync.compares = true
      // Own changes that the feed may have are pulled before anything is sent, from the old cursor.
      if canRead, tx.progress.isRereading || bringsBackLost { resync.keepsCursor = true }
      resync.seenThrough = min(seenThrough, tx.progress.resync?.seenThrough ?? seenThrough)
      tx.progress.resync = resync
    }
  }

  private func finishResync(at position: FeedPosition?) throws {
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

  /// The digests of what the feed is known to hold, for all parts that fit, at least the first.
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

  /// - Returns: nil for a key that is deleted or out of scope.
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
  /// - Returns: whether the key is to be deleted here.
  fileprivate mutating func reconcile(_ key: [UInt8], _ remote: RemoteState?) throws -> Bool {
    let newest = try log.newestChange(ofKey: key)
    let known = try reflectedRemote(ofKey: key, newest: newest)
    let isUnsettled = newest.map { isPending($0) } ?? false
    guard let remote else {
      guard known != nil else { return false }
      // A pending change keeps the key: its verdict shows whether the key is deleted or not
      // covered.
      return !isUnsettled && newest?.kind == .put
    }
    if let known, !known.isEvicted, known.position.offset >= remote.position.offset {
      return false
    }
    if isUnsettled, progress.resync?.keepsCursor ?? false,
      remote.position.offset > progress.cursor.offset
    {
      // The feed is pulled again from the cursor, and may return the local change as well.
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

  /// Counts an own change as applied that the comparison finds in a restored feed before a pull
  /// returns it: changes made upon it do not conflict with earlier versions.
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
    // One that is not in the log any more counts as another replica's.
    return try log.change(at: sequence) != nil
  }
}

extension PeerView {
  /// A delete or eviction for a key that the feed does not have. If the authorization may not cover
  /// the key, the entry has its last known position: a later version must not count as older.
  fileprivate func gone(_ newest: LoggedChange) -> FeedEntry? {
    guard progress.reach != 0 || progress.resync?.evicts ?? false else {
      return .nothing(newest.key, at: session.comparing?.walk.position ?? .beginning)
    }
    return position(of: newest).map { .nothing(newest.key, at: $0, .left) }
  }
}
