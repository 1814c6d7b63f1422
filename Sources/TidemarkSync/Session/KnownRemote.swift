internal import Tidemark
internal import TidemarkEngine
internal import TidemarkSyncProtocol

/// The version that a feed holds at a key, as far as this store knows.
enum KnownRemote {
  /// The same as a version of the key here, which stands there at a position.
  case version(LoggedChange, Position)
  /// Something that was laid beside the value here.
  case beside(RemoteState)

  var position: Position {
    switch self {
    case .version(_, let position): position
    case .beside(let state): state.position
    }
  }

  /// The labels of the value there; nil where there is none, or it is not known.
  var labels: [EntryLabel]? {
    switch self {
    case .version(let version, _): version.kind == .put ? version.labels : nil
    case .beside(let state): state.isDeleted ? nil : state.content.labels
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
    case .beside(let state): state.isAbsent
    }
  }
}

extension SyncSession {
  /// The version that the feed holds at a key.
  /// - Parameter newest: the key's newest version to look at, which may count itself.
  /// - Returns: nil when the key is not known to be there, nor to have been there.
  func knownRemote(
    ofKey key: [UInt8], from newest: LoggedChange?
  ) throws(TidemarkError) -> KnownRemote? {
    let beside = try beside(ofKey: key)
    var version = newest
    while let candidate = version {
      if let position = position(of: candidate) {
        // A version laid beside an own change while it was under way may stand before it there.
        if let beside, beside.sequence > candidate.sequence,
          beside.state.position.offset >= position.offset
        {
          break
        }
        return .version(candidate, position)
      }
      version = try log.change(at: candidate.previous)
    }
    return beside.map { .beside($0.state) }
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
  func beside(ofKey key: [UInt8]) throws(TidemarkError) -> (sequence: UInt64, state: RemoteState)? {
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
