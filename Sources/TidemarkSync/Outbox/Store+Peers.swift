public import Tidemark
public import TidemarkEngine
internal import TidemarkSyncProtocol

/// The facts that a store knows of a peer.
public struct PeerInfo: Sendable, Hashable {
  /// The name that the store knows it by.
  public var name: String
  /// Where it is, as far as its replicator has said.
  public var target: String
  /// The keys that the store and the peer have in common.
  public var scope: SyncScope
  /// Everything up to here was taken from its feed.
  public var cursor: Position
  /// How many entries of its feed were not taken yet when it answered last.
  public var entriesToTake: UInt64
  /// The entries that it lacks.
  public var pending: PendingSummary
  /// When it answered last; nil for never, or not written down.
  public var lastSuccess: Timestamp?
  /// Until when it keeps deletes for this store; nil where that is unknown.
  public var leaseEnds: Timestamp?
  /// The last failure; nil when something has worked since.
  public var lastError: String?
  /// When that was.
  public var lastErrorTime: Timestamp?
  /// Whether a replicator of this process has it.
  public var isLive: Bool
  /// History that compactions keep for it.
  public var held: HeldHistory
}

extension Store {
  /// The peers that the store has replicated with, by name.
  public func peers() async throws(TidemarkError) -> [PeerInfo] {
    try await onSyncThread { try $0.peers() }
  }

  /// Forgets a peer: what was sent to it and taken from it, what it refused and what is in
  /// conflict with it, what it calls the keys, and what compactions keep for it. All data stays. If
  /// it is replicated with again, everything is compared as at the first time. Before somebody else
  /// signs in use ``Replicator/signOut(_:keeping:)``: what stays counts as unsent.
  /// - Throws: `invalidArgument` when a replicator of this process has it, or nobody knows it.
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

  /// - Parameter isLast: no other peer is left that could know of remote states.
  fileprivate mutating func forget(isLast: Bool) throws(TidemarkError) {
    guard settings == nil else {
      throw TidemarkError(
        .invalidArgument, "a replicator named \(name) is there; let go of it first")
    }
    var batch = OperationBatch()
    try session().records.removeAll(isLast: isLast, into: &batch)
    try engine.commit(batch, durability: .durable)
    status = PeerStatus()
    recorded = nil
    (ledger, recordedLedger) = (nil, nil)
    reopen()
  }
}

extension Store {
  /// The peer's name for a key: the id that a back end has given it; see `RequestPeer`.
  /// - Parameters:
  ///   - key: the key.
  ///   - name: of the peer.
  /// - Returns: nil where the peer has given none, or has none any more.
  public func alias(
    forKey key: some BytesConvertible & Sendable, at name: String
  ) async throws(TidemarkError) -> Alias? {
    try await onSyncThread { try $0.alias(forKey: key, at: name) }
  }

  /// The key that a peer calls so.
  /// - Parameters:
  ///   - alias: the id that a back end has given it.
  ///   - name: of the peer.
  /// - Returns: nil where no key here is called so.
  public func key(forAlias alias: Alias, at name: String) async throws(TidemarkError) -> Key? {
    try await onSyncThread { try $0.key(forAlias: alias, at: name) }
  }
}

extension Store.Blocking {
  /// The peer's name for a key; see ``TidemarkStore/Store/alias(forKey:at:)``.
  public func alias(
    forKey key: some BytesConvertible, at name: String
  ) throws(TidemarkError) -> Alias? {
    let bytes = key.withBytes { [UInt8](copying: $0) }
    return try ask(name) { try $0.session().knownAliases().alias(ofKey: bytes) }
  }

  /// The key that a peer calls so; see ``TidemarkStore/Store/key(forAlias:at:)``.
  public func key(forAlias alias: Alias, at name: String) throws(TidemarkError) -> Key? {
    try ask(name) { try $0.session().knownAliases().key(ofAlias: alias) }
  }
}
