internal import Tidemark
internal import TidemarkEngine
internal import TidemarkSyncProtocol

/// The state of a key's versions in the feed: which own changes it lacks, what it is known to hold,
/// and the bases of pending changes.
extension PeerView {
  /// Whether a change is to be sent: it is within the scope, or the version that the feed has is.
  /// So the peer also gets a change that moves a key out of the scope.
  func isWithin(_ change: LoggedChange) throws(TidemarkError) -> Bool {
    if change.kind == .delete || scope.contains(key: change.key, labels: change.labels) {
      return true
    }
    let previous = try log.change(at: change.previous)
    let there = try knownRemote(ofKey: change.key, from: previous)
    return there?.labels.map { scope.contains(key: change.key, labels: $0) } ?? false
  }

  /// Whether a change is an own put that the feed does not have: pending, or out of scope.
  func isUnsentPut(_ change: LoggedChange) -> Bool {
    change.isOwn && change.kind == .put && position(of: change) == nil
  }

  /// Whether a remote state would overwrite an own change that was never sent and is not pending: a
  /// put out of scope whose key now has a version within it, or a delete that had nothing to delete
  /// until another replica sent its base again.
  func wouldBeOverwritten(_ newest: LoggedChange, _ remote: RemoteState) throws(TidemarkError)
    -> Bool
  {
    guard newest.isOwn, position(of: newest) == nil else { return false }
    if newest.kind == .put { return true }
    return try isMade(newest, upon: remote)
  }

  /// Whether a change was made upon a version that the feed got again later: an own change that
  /// this store sent before it was restored, or a copy of it sent, or one that the peer had lost
  /// and another replica sent again.
  func isMade(_ change: LoggedChange, upon remote: RemoteState) throws(TidemarkError) -> Bool {
    guard !remote.isDeleted else { return false }
    let (lacking, held) = try versions(from: log.change(at: change.previous))
    for version in lacking + (held.map { [$0] } ?? []) {
      // A replica that sends a lost change again keeps its commit time.
      let mayBeIts =
        version.attributes.origin != nil || version.sequence <= progress.possiblyKnownThrough
        || version.sequence == remote.operation.sequence
        || version.commitTime == remote.commitTime
      if mayBeIts, version.kind == .put, try log.content(of: version) == remote.content {
        return true
      }
    }
    return false
  }

  /// Whether the peer may have the key of a change without a known base: compaction has dropped
  /// older versions, or they were written, and perhaps sent, under an earlier replica id.
  func mayBeThere(_ change: LoggedChange) throws(TidemarkError) -> Bool {
    var previous = change.previous
    while previous > 0 {
      guard previous > progress.renamedThrough, let version = try log.change(at: previous) else {
        return true
      }
      previous = version.previous
    }
    return false
  }

  /// Whether the key's remote state from before a restore of the peer is the same version, at a
  /// position that is void now: the pending change was made upon it or decided against it.
  func isDecidedUpon(_ remote: RemoteState, ofKey key: [UInt8]) throws(TidemarkError) -> Bool {
    guard let found = try records.remote(ofKey: key)?.state,
      !(range?.contains(found.position) ?? true)
    else { return false }
    return found.commitTime == remote.commitTime && found.isDeleted == remote.isDeleted
      && found.content == remote.content
  }

  /// A version here as the remote state, if the feed holds the same.
  func remoteState(
    of version: LoggedChange, at position: FeedPosition
  ) throws(TidemarkError) -> RemoteState {
    let writer = version.attributes.origin.flatMap { ReplicaID($0.replica) } ?? replica
    return RemoteState(
      FeedEntry(
        position: position, kind: version.kind == .put ? .put : .delete,
        operation: OperationID(replica: writer, sequence: version.sequence), key: version.key,
        content: try log.content(of: version), commitTime: version.commitTime,
        time: version.attributes.time))
  }
}

extension SyncTransaction {
  /// Adopts a version: writes it again as an own change, so that it is sent to the feed, which lost
  /// it.
  mutating func adopt(_ version: LoggedChange, upon slot: Slot) throws(TidemarkError) {
    var attributes = version.attributes
    attributes.origin = nil
    attributes.base = nil
    attributes.writerTime = version.commitTime
    let content = version.kind == .delete ? nil : try log.content(of: version)
    try operations.add(content, ofKey: version.key, attributes, upon: slot)
  }

  /// Saves the base of a refused change as the key's remote state: later changes of the key have
  /// the same base, and compaction may drop the history between.
  mutating func keepBase(of change: LoggedChange) throws(TidemarkError) {
    guard let below = try log.change(at: change.previous),
      case .version(let version, let position)? = try knownRemote(ofKey: change.key, from: below),
      version.kind == .put
    else { return }
    try writeRemote(remoteState(of: version, at: position), ofKey: change.key)
  }
}

extension SyncSession {
  private static let adoptedPerCommit = 256

  /// Adopts all pulled entries that a restored or recreated feed does not have any more, deletes
  /// too: they become own changes, which are sent, so that other replicas get them again.
  func adoptLost() throws {
    var cursor = log.entries(from: 1, through: log.head)
    var lost: [(key: [UInt8], sequence: UInt64)] = []
    while let entry = try cursor.next() {
      guard entry.head.kind == .put || entry.head.kind == .delete else { continue }
      let change = try LoggedChange(entry)
      guard try isLost(change),
        try log.newestChange(ofKey: change.key)?.sequence == change.sequence
      else { continue }
      lost.append((change.key, change.sequence))
      if lost.count == Self.adoptedPerCommit {
        try adoptAll(lost)
        lost = []
      }
    }
    try adoptAll(lost, isLast: true)
  }

  private func adoptAll(_ lost: [(key: [UInt8], sequence: UInt64)], isLast: Bool = false) throws {
    try commit { tx in
      for (key, sequence) in lost {
        guard let newest = try log.newestChange(ofKey: key), newest.sequence == sequence,
          let slot = try log.slot(ofKey: key)
        else { continue }
        try tx.adopt(newest, upon: slot)
      }
      if isLast { tx.progress.resync?.adopts = false }
    }
  }
}

extension PeerView {
  /// Whether a pulled entry is not in the feed any more.
  fileprivate func isLost(_ change: LoggedChange) throws(TidemarkError) -> Bool {
    guard change.attributes.origin != nil, change.attributes.entryClass == .owned,
      position(of: change) == nil
    else { return false }
    if PlantedSyncBug.isOn(.lostNotAdopted) { return false }
    let labels =
      change.kind == .delete
      ? try log.change(at: change.previous)?.labels ?? [] : change.labels
    // A pulled change out of scope came from another peer.
    return scope.contains(key: change.key, labels: labels)
  }
}

/// The version of a key in the feed, as far as this store knows.
enum KnownRemote {
  /// The feed has a version that is in this log, at this position.
  case version(LoggedChange, FeedPosition)
  /// The feed has another version than the log, saved as the key's remote state.
  case conflicting(RemoteState)

  var position: FeedPosition {
    switch self {
    case .version(_, let position): position
    case .conflicting(let state): state.position
    }
  }

  /// The labels of the feed's value; nil if there is none, or it is not known.
  var labels: [EntryLabel]? {
    switch self {
    case .version(let version, _): version.kind == .put ? version.labels : nil
    case .conflicting(let state): state.isDeleted ? nil : state.content.labels
    }
  }

  /// Whether the key was evicted: out of scope, so that its value was not pulled.
  var isEvicted: Bool {
    if case .version(let version, _) = self { version.kind == .evict } else { false }
  }

  /// Whether the feed has no entry of the key, not even a delete as a base.
  var isAbsent: Bool {
    switch self {
    case .version(let version, _):
      version.kind == .delete && version.attributes.origin?.replica == ReplicaID.none.bytes
    case .conflicting(let state): state.isAbsent
    }
  }
}

extension PeerView {
  /// A version and earlier ones of its key: those that the feed lacks, the newest first, and the
  /// one before them that it has, or had.
  func versions(
    from newest: LoggedChange?
  ) throws(TidemarkError) -> (lacking: [LoggedChange], held: LoggedChange?) {
    var (lacking, next) = ([LoggedChange](), newest)
    while let version = next, position(of: version) == nil {
      lacking.append(version)
      next = try log.change(at: version.previous)
    }
    return (lacking, next)
  }

  /// The version that the feed is known to hold at a key.
  /// - Parameter newest: the version to start from, going back; it may be the result itself.
  /// - Returns: nil if the feed is not known to have, or to have had, the key.
  func knownRemote(
    ofKey key: [UInt8], from newest: LoggedChange?
  ) throws(TidemarkError) -> KnownRemote? {
    let conflicting = try conflicting(ofKey: key)
    guard let held = try versions(from: newest).held, let position = position(of: held) else {
      return conflicting.map { .conflicting($0.state) }
    }
    // A remote state saved while an own change was in flight may be earlier in the feed.
    if let conflicting, conflicting.sequence > held.sequence,
      conflicting.state.position.offset >= position.offset
    {
      return .conflicting(conflicting.state)
    }
    return .version(held, position)
  }

  /// The same, as far as local state reflects it: nil if the newest change is neither pending nor
  /// in the feed, since it hides older versions.
  func reflectedRemote(
    ofKey key: [UInt8], newest: LoggedChange?
  ) throws(TidemarkError) -> KnownRemote? {
    guard let newest else { return nil }
    if isPending(newest) { return try knownRemote(ofKey: key, from: newest) }
    return position(of: newest).map { .version(newest, $0) }
  }

  /// The key's remote state, saved beside a local value, with the sequence of its record.
  /// - Returns: nil if there is none, or the feed does not have it any more.
  func conflicting(
    ofKey key: [UInt8]
  ) throws(TidemarkError) -> (sequence: UInt64, state: RemoteState)? {
    guard let found = try records.remote(ofKey: key),
      range?.contains(found.state.position) ?? true
    else { return nil }
    return found
  }

  /// The position of a version in the feed; nil if the feed does not have it (any more).
  func position(of version: LoggedChange) -> FeedPosition? {
    let position =
      version.attributes.origin == nil
      ? acknowledged.position(of: version.sequence) : version.position
    guard let position, let range, !range.contains(position) else { return position }
    return nil
  }

  /// The base that a push states for a change: the last version before it that this peer's feed
  /// has, or the key's remote state.
  func base(of change: LoggedChange) throws(TidemarkError) -> ChangeBase {
    let previous = try log.change(at: change.previous)
    guard let known = try knownRemote(ofKey: change.key, from: previous) else { return .absent }
    // The position `beginning` means that the feed had nothing.
    let isAbsent = known.isAbsent || known.position == .beginning
    return isAbsent ? .absent : .position(known.position)
  }

  /// The content that a change was made upon, the common ancestor of a three-way merge.
  func baseContent(of change: LoggedChange) throws(TidemarkError) -> SyncContent? {
    let held = try versions(from: log.change(at: change.previous)).held
    return try held.flatMap { (held) throws(TidemarkError) in
      held.kind == .put ? try log.content(of: held) : nil
    }
  }
}

extension FeedEntry {
  /// A synthetic entry, of no replica, for a key without any entry in the feed, or none that the
  /// authorization covers.
  static func nothing(_ key: [UInt8], at position: FeedPosition, _ kind: Kind = .delete)
    -> FeedEntry
  {
    FeedEntry(
      position: position, kind: kind, operation: OperationID(replica: .none, sequence: 0),
      key: key)
  }
}
