internal import Tidemark
internal import TidemarkEngine
internal import TidemarkSyncProtocol

/// Own changes that the feed does not have, and their bases.
extension PeerView {
  /// Whether a change is to be sent: its key is within the scope, or was in the feed as far as is
  /// known. So the peer also learns that a local change has moved a key out of the scope.
  func isWithin(_ change: LoggedChange) throws(TidemarkError) -> Bool {
    if change.kind == .delete || scope.contains(key: change.key, labels: change.labels) {
      return true
    }
    let former = try log.change(at: change.previous)
    let there = try knownRemote(ofKey: change.key, from: former)
    return there?.labels.map { scope.contains(key: change.key, labels: $0) } ?? false
  }

  /// Whether an own put is not in the feed: it is pending, or out of scope.
  func isUnheard(_ change: LoggedChange) -> Bool {
    change.isOwn && change.kind == .put && position(of: change) == nil
  }

  /// Whether an own change that is not pending would be lost to what came from the feed although
  /// nobody has heard of it: a put that was out of scope until the feed had something within at
  /// its key; a delete that was not worth sending until somebody brought back what it was made
  /// upon.
  func isAtStake(_ newest: LoggedChange, _ remote: RemoteState) throws(TidemarkError) -> Bool {
    guard newest.isOwn, position(of: newest) == nil else { return false }
    if newest.kind == .put { return true }
    return try isMade(newest, upon: remote)
  }

  /// Whether a change was made upon what came from the feed, which did not stand there then: upon
  /// an own change that a former life of this store, or a copy of it, has sent, or upon what the
  /// peer had lost and somebody has brought back.
  func isMade(_ change: LoggedChange, upon remote: RemoteState) throws(TidemarkError) -> Bool {
    guard !remote.isDeleted else { return false }
    var previous = change.previous
    while let version = try log.change(at: previous) {
      // A peer that brings a change back keeps the time at which it was made.
      let mayBeIts =
        version.attributes.origin != nil || version.sequence <= progress.heardThrough
        || version.sequence == remote.operation.sequence
        || version.commitTime == remote.commitTime
      if mayBeIts, version.kind == .put, try log.content(of: version) == remote.content {
        return true
      }
      if position(of: version) != nil { return false }
      previous = version.previous
    }
    return false
  }

  /// Whether the peer may know the key of a change that nothing known there stands below: what it
  /// was made upon went with the history, or was written before this store took another name,
  /// under which it may have been sent.
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

  /// Whether a pending change was made upon a remote state, or was decided against it, when that
  /// stood at another place: the peer was restored since.
  func isDecidedUpon(_ remote: RemoteState, ofKey key: [UInt8]) throws(TidemarkError) -> Bool {
    guard let found = try records.remote(ofKey: key)?.state,
      !(range?.contains(found.position) ?? true)
    else { return false }
    return found.commitTime == remote.commitTime && found.isDeleted == remote.isDeleted
      && found.content == remote.content
  }

  /// The state that a version gives its key here, where the feed holds the same.
  func remoteState(
    of version: LoggedChange, at position: Position
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
  /// Writes a version of a key once more, as a change of our own.
  mutating func adopt(_ version: LoggedChange, upon slot: Slot) throws(TidemarkError) {
    var attributes = version.attributes
    attributes.origin = nil
    attributes.base = nil
    attributes.writerTime = version.commitTime
    let content = version.kind == .delete ? nil : try log.content(of: version)
    try operations.add(content, ofKey: version.key, attributes, upon: slot)
  }

  /// Lays beside a key what a change was made upon, when the peer will not have the change: a
  /// later one is made upon that still, and the history between them need not be kept for it.
  mutating func keepBase(of change: LoggedChange) throws(TidemarkError) {
    guard let former = try log.change(at: change.previous),
      case .version(let version, let position)? = try knownRemote(ofKey: change.key, from: former),
      version.kind == .put
    else { return }
    try writeRemote(remoteState(of: version, at: position), ofKey: change.key)
  }
}

extension SyncSession {
  private static let adoptedPerCommit = 256

  /// Makes changes of our own of what came from the feed and is not in it any more, so that others
  /// get it back: the peer was restored from a backup or made anew. A delete counts, too.
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
  /// Whether an entry came from the feed, which has it no more.
  fileprivate func isLost(_ change: LoggedChange) throws(TidemarkError) -> Bool {
    guard change.attributes.origin != nil, change.attributes.entryClass == .owned,
      position(of: change) == nil
    else { return false }
    if PlantedSyncBug.isOn(.lostNotAdopted) { return false }
    let labels =
      change.kind == .delete
      ? try log.change(at: change.previous)?.labels ?? [] : change.labels
    // A change out of scope came from another peer.
    return scope.contains(key: change.key, labels: labels)
  }
}

/// The version that a feed holds at a key, as far as this store knows.
enum KnownRemote {
  /// The same as a version of the key here, which stands there at a position.
  case version(LoggedChange, Position)
  /// Something that was laid beside the value here.
  case conflicting(RemoteState)

  var position: Position {
    switch self {
    case .version(_, let position): position
    case .conflicting(let state): state.position
    }
  }

  /// The labels of the value there; nil where there is none, or it is not known.
  var labels: [EntryLabel]? {
    switch self {
    case .version(let version, _): version.kind == .put ? version.labels : nil
    case .conflicting(let state): state.isDeleted ? nil : state.content.labels
    }
  }

  /// Whether the key was out of scope when this was learnt, and its value did not come.
  var isEvicted: Bool {
    if case .version(let version, _) = self { version.kind == .evict } else { false }
  }

  /// Whether the feed has nothing at the key, not even a delete that a change could be made upon.
  var isAbsent: Bool {
    switch self {
    case .version(let version, _):
      version.kind == .delete && version.attributes.origin?.replica == ReplicaID.none.bytes
    case .conflicting(let state): state.isAbsent
    }
  }
}

extension PeerView {
  /// The version that the feed holds at a key.
  /// - Parameter newest: the key's newest version to look at, which may count itself.
  /// - Returns: nil when the key is not known to be there, nor to have been there.
  func knownRemote(
    ofKey key: [UInt8], from newest: LoggedChange?
  ) throws(TidemarkError) -> KnownRemote? {
    let conflicting = try conflicting(ofKey: key)
    var version = newest
    while let candidate = version {
      if let position = position(of: candidate) {
        // A version laid beside an own change while it was under way may stand before it there.
        if let conflicting, conflicting.sequence > candidate.sequence,
          conflicting.state.position.offset >= position.offset
        {
          break
        }
        return .version(candidate, position)
      }
      version = try log.change(at: candidate.previous)
    }
    return conflicting.map { .conflicting($0.state) }
  }

  /// The version that the feed is known to hold at a key, as far as it shows here: a change that is
  /// neither pending nor in the feed hides what lies below.
  func reflectedRemote(
    ofKey key: [UInt8], newest: LoggedChange?
  ) throws(TidemarkError) -> KnownRemote? {
    guard let newest else { return nil }
    if isPending(newest) { return try knownRemote(ofKey: key, from: newest) }
    return position(of: newest).map { .version(newest, $0) }
  }

  /// The state that was laid beside a key's value, with the sequence of its record.
  /// - Returns: nil when there is nothing, or what was there is not in the feed any more.
  func conflicting(
    ofKey key: [UInt8]
  ) throws(TidemarkError) -> (sequence: UInt64, state: RemoteState)? {
    guard let found = try records.remote(ofKey: key),
      range?.contains(found.state.position) ?? true
    else { return nil }
    return found
  }

  /// Where a version of a key stands in the feed; nil when it is not there, or not any more.
  func position(of version: LoggedChange) -> Position? {
    let position =
      version.attributes.origin == nil
      ? settled.position(of: version.sequence) : version.position
    guard let position, let range, !range.contains(position) else { return position }
    return nil
  }

  /// The version that a key's change was made upon, as far as this peer's feed is concerned: the
  /// last version before it that stands in the feed, or the remote state that was laid beside it.
  func base(of change: LoggedChange) throws(TidemarkError) -> ChangeBase {
    let former = try log.change(at: change.previous)
    guard let known = try knownRemote(ofKey: change.key, from: former) else { return .absent }
    // At the beginning there was nothing.
    let isAbsent = known.isAbsent || known.position == .beginning
    return isAbsent ? .absent : .position(known.position)
  }

  /// The version that a change was made upon, for a three-way merge.
  func baseContent(of change: LoggedChange) throws(TidemarkError) -> SyncContent? {
    var previous = change.previous
    while previous > 0, let version = try log.change(at: previous) {
      if position(of: version) != nil {
        return version.kind == .put ? try log.content(of: version) : nil
      }
      previous = version.previous
    }
    return nil
  }
}

extension FeedEntry {
  /// An entry that nobody has written: the feed has nothing at the key, not even a delete, or
  /// nothing that it shows.
  static func nothing(_ key: [UInt8], at position: Position, _ kind: Kind = .delete) -> FeedEntry {
    FeedEntry(
      position: position, kind: kind, operation: OperationID(replica: .none, sequence: 0),
      key: key)
  }
}
