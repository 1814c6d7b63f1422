public import Tidemark
public import TidemarkEngine
internal import TidemarkSyncProtocol

/// A peer's status as saved in the store, for a user interface and `logtool peers`.
public struct PeerInfo: Sendable, Hashable {
  /// The name of the replicator, under which the store keeps the peer's state.
  public var name: String
  /// The peer's address from ``Replicator/Configuration/target``; empty if none was given.
  public var target: String
  /// The scope of the replicator: which entries it pushes to the peer and pulls from it.
  public var scope: SyncScope
  /// The position in the peer's feed through which this store has pulled.
  public var cursor: FeedPosition
  /// How many entries of the peer's feed this store had not pulled yet when the peer last answered.
  public var entriesToTake: UInt64
  /// Counts the entries of this store that the peer does not have yet.
  public var pending: PendingSummary
  /// When the peer last answered; nil if it never did or the time is not saved.
  public var lastSuccess: Timestamp?
  /// When this store's lease at the peer ends; nil if unknown. Until then the peer keeps deletes
  /// for this store.
  public var leaseEnds: Timestamp?
  /// The last failure; nil after a success.
  public var lastError: String?
  /// When the last failure with the peer occurred; nil if none is saved.
  public var lastErrorTime: Timestamp?
  /// Whether this process has a replicator for the peer now.
  public var isLive: Bool
  /// The history that compaction cannot drop yet, since this peer still needs it.
  public var held: HeldHistory
}

extension Store {
  /// Returns the status of every peer with which the store has replicated, in the order of their
  /// names.
  public func peers() async throws(TidemarkError) -> [PeerInfo] {
    try await onSyncThread { try $0.peers() }
  }

  /// Forgets a peer: its checkpoint, what was sent to it, its parked entries and conflicts, its
  /// aliases, and the history that compaction keeps for it. All data stays. A later replicator of
  /// the name starts as with a new peer. Before another user signs in use
  /// ``Replicator/signOut(_:keeping:)``: after `forget` the data counts as unsent.
  /// - Throws: `invalidArgument` for an unknown peer, or if this process has a replicator of the
  ///   name.
  public func forget(peer name: String) async throws(TidemarkError) {
    try await onSyncThread { try $0.forget(peer: name) }
  }
}

extension Store.Blocking {
  /// Returns the status of every peer with which the store has replicated, blocking; see
  /// ``TidemarkStore/Store/peers()``.
  public func peers() throws(TidemarkError) -> [PeerInfo] {
    let held = Dictionary(
      try store.heldHistory().map { ($0.peer, $0) }, uniquingKeysWith: { $1 })
    return try peerNames().map { (name) throws(TidemarkError) in
      try ask(name) { try $0.info(held[name] ?? HeldHistory(peer: name)) }
    }
  }

  /// The names of all peers, in byte order.
  func peerNames() throws(TidemarkError) -> [String] {
    let names = PeerRecords.names(in: try RecordTable(store.engine.reader))
    return names.map { String(decoding: $0, as: UTF8.self) }.sorted()
  }

  /// Removes all state that the store keeps about a peer, and blocks until that is done; see
  /// ``TidemarkStore/Store/forget(peer:)``.
  public func forget(peer name: String) throws(TidemarkError) {
    let names = try peerNames()
    guard names.contains(name) else {
      throw TidemarkError(.invalidArgument, "the store knows no peer named \(name)")
    }
    try ask(name) { try $0.forget(isLast: names.count == 1) }
  }
}

extension HostState {
  fileprivate mutating func info(_ held: HeldHistory) throws(TidemarkError) -> PeerInfo {
    let session = try session()
    let pending = try pendingSummary()
    func time(_ milliseconds: UInt64) -> Timestamp? {
      milliseconds == 0 ? nil : Timestamp(milliseconds: Int64(clamping: milliseconds))
    }
    let cursor = session.progress.cursor
    return PeerInfo(
      name: name, target: status.target, scope: session.scope, cursor: cursor,
      entriesToTake: status.head - min(status.head, cursor.offset), pending: pending,
      lastSuccess: time(status.lastSuccess), leaseEnds: time(status.leaseEnds),
      lastError: status.error.isEmpty ? nil : status.error, lastErrorTime: time(status.errorTime),
      isLive: settings != nil, held: held)
  }

  /// - Parameter isLast: whether no other peer is left, so that remote states are removed as well.
  fileprivate mutating func forget(isLast: Bool) throws(TidemarkError) {
    guard settings == nil else {
      throw TidemarkError(
        .invalidArgument, "a replicator named \(name) exists; release it first")
    }
    var batch = OperationBatch()
    try session().records.removeAll(isLast: isLast, into: &batch)
    try engine.commit(batch, durability: .durable)
    forgetStatus()
    reopen()
  }
}

extension Store {
  /// Returns the alias of a key: the id that the peer's back end gave to the key's record; see
  /// `RequestPeer`.
  /// - Parameters:
  ///   - key: the key whose alias you want.
  ///   - name: the name of the replicator for the peer.
  /// - Returns: nil if the peer has given no alias, or the record is deleted there.
  public func alias(
    forKey key: some BytesConvertible & Sendable, at name: String
  ) async throws(TidemarkError) -> KeyAlias? {
    try await onSyncThread { try $0.alias(forKey: key, at: name) }
  }

  /// Returns the key whose record at a peer has an alias.
  /// - Parameters:
  ///   - alias: the id that the back end has given to the record.
  ///   - name: the name of the replicator for the peer.
  /// - Returns: nil if no key of the store has the alias.
  public func key(forAlias alias: KeyAlias, at name: String) async throws(TidemarkError) -> Key? {
    try await onSyncThread { try $0.key(forAlias: alias, at: name) }
  }
}

extension Store.Blocking {
  /// Returns the id that a peer's back end gave to a key's record, blocking; see
  /// ``TidemarkStore/Store/alias(forKey:at:)``.
  public func alias(
    forKey key: some BytesConvertible, at name: String
  ) throws(TidemarkError) -> KeyAlias? {
    let bytes = key.withBytes { [UInt8](copying: $0) }
    return try ask(name) { try $0.session().knownAliases().alias(ofKey: bytes) }
  }

  /// Returns the key whose record at a peer has an alias, blocking; see
  /// ``TidemarkStore/Store/key(forAlias:at:)``.
  public func key(forAlias alias: KeyAlias, at name: String) throws(TidemarkError) -> Key? {
    try ask(name) { try $0.session().knownAliases().key(ofAlias: alias) }
  }
}
