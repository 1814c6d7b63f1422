public import Tidemark
public import TidemarkEngine
internal import TidemarkSyncProtocol

/// A peer's status as saved in the store, for a user interface and `logtool peers`.
public struct PeerInfo: Sendable, Hashable {
  /// The name that the store knows it by.
  public var name: String
  /// Its address, if its replicator was given one.
  public var target: String
  /// The entries that are replicated with the peer.
  public var scope: SyncScope
  /// Everything in its feed up to here was pulled.
  public var cursor: Position
  /// How many entries of its feed were not pulled when it answered last.
  public var entriesToTake: UInt64
  /// Counts of the entries that are not synced with it.
  public var pending: PendingSummary
  /// When it answered last; nil if never or not saved.
  public var lastSuccess: Timestamp?
  /// The end of the lease, until which it keeps deletes for this store; nil if unknown.
  public var leaseEnds: Timestamp?
  /// The last failure; nil after a success.
  public var lastError: String?
  /// When the last failure occurred.
  public var lastErrorTime: Timestamp?
  /// Whether this process has a replicator of this name.
  public var isLive: Bool
  /// The history that compaction keeps for it.
  public var held: HeldHistory
}

extension Store {
  /// The peers that the store has replicated with, by name.
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
  /// The peers that the store has replicated with; see ``TidemarkStore/Store/peers()``.
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

  /// Forgets a peer; see ``TidemarkStore/Store/forget(peer:)``.
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
  /// The alias of a key: the id of its record at the peer's back end; see `RequestPeer`.
  /// - Parameters:
  ///   - key: the key.
  ///   - name: of the peer.
  /// - Returns: nil if the peer has given none, or the record is deleted there.
  public func alias(
    forKey key: some BytesConvertible & Sendable, at name: String
  ) async throws(TidemarkError) -> Alias? {
    try await onSyncThread { try $0.alias(forKey: key, at: name) }
  }

  /// The key whose record at a peer has an alias.
  /// - Parameters:
  ///   - alias: the id that the back end has given to the record.
  ///   - name: of the peer.
  /// - Returns: nil if no key here has the alias.
  public func key(forAlias alias: Alias, at name: String) async throws(TidemarkError) -> Key? {
    try await onSyncThread { try $0.key(forAlias: alias, at: name) }
  }
}

extension Store.Blocking {
  /// The alias of a key; see ``TidemarkStore/Store/alias(forKey:at:)``.
  public func alias(
    forKey key: some BytesConvertible, at name: String
  ) throws(TidemarkError) -> Alias? {
    let bytes = key.withBytes { [UInt8](copying: $0) }
    return try ask(name) { try $0.session().knownAliases().alias(ofKey: bytes) }
  }

  /// The key with an alias; see ``TidemarkStore/Store/key(forAlias:at:)``.
  public func key(forAlias alias: Alias, at name: String) throws(TidemarkError) -> Key? {
    try ask(name) { try $0.session().knownAliases().key(ofAlias: alias) }
  }
}
