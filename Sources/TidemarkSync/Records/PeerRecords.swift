internal import Tidemark
package import TidemarkEngine
internal import TidemarkSyncProtocol

/// One peer's records in the log: progress, positions, waiting entries, remote states, pin,
/// aliases. The session's commits write those that have changed.
package final class PeerRecords {
  let log: ReplicationLog
  let name: [UInt8]
  private(set) var table: RecordTable
  /// The progress's basis that was written last.
  var basis = PeerProgress.Basis()

  init(_ log: ReplicationLog, peer: [UInt8]) throws(TidemarkError) {
    self.log = log
    name = peer
    table = try RecordTable(log.reader)
  }

  // MARK: Reading

  /// The state saved in the log; nil if there is none, as for a new peer.
  func savedState() throws(TidemarkError) -> PeerState? {
    guard let first = try table.value(of: .peerProgress, key: name),
      let value = try table.value(of: .pin, key: pinKey)
    else { return nil }
    let pin: [UInt8]
    var saved: PeerState
    do throws(FormatError) {
      let rest: [UInt8]
      (pin, rest) = try RetentionPin.split(value.rawSpan)
      saved = try PeerState.decode(rest.rawSpan, basis: first.rawSpan)
    } catch { throw Self.unreadable(error) }
    basis = saved.basis
    for (key, sequence) in numbered(.peerWaiting).sorted(by: { $0.number < $1.number }) {
      guard let reason: WaitReason = try table.read(.peerWaiting, key: key) else { continue }
      saved.progress.outbox.waiting.restore(try log.change(at: sequence), sequence, reason)
    }
    saved.acknowledged = try acknowledged(saved.tail)
    // While a pin cannot be read, compaction keeps everything.
    saved.pin = try? RetentionPin(decoding: pin.rawSpan)
    return saved
  }

  private func acknowledged(_ tail: [AcknowledgedRun]) throws(TidemarkError) -> AcknowledgedRuns {
    var found: [(number: UInt64, value: [UInt8])] = []
    for (key, number) in numbered(.peerSettled) {
      guard let value = try table.value(of: .peerSettled, key: key) else { continue }
      found.append((number, value))
    }
    do { return try AcknowledgedRuns(decoding: found, tail: tail) } catch {
      throw Self.unreadable(error)
    }
  }

  /// The keys of the peer's records of a numbered type, with their numbers.
  private func numbered(_ type: RecordType) -> [(key: [UInt8], number: UInt64)] {
    table.keys(of: type)
      .filter { $0.count == name.count + 8 && $0.suffix(name.count).elementsEqual(name) }
      .map { key in (key, key.prefix(8).reversed().reduce(0) { $0 << 8 | UInt64($1) }) }
  }

  /// The key of a numbered record: the number, little-endian, and the peer's name.
  private func key(_ number: UInt64) -> [UInt8] {
    (0..<8).map { UInt8(truncatingIfNeeded: number >> (8 * $0)) } + name
  }

  /// The feed's version of a key whose local value differs, and the sequence of its record.
  func remote(ofKey key: [UInt8]) throws(TidemarkError) -> (sequence: UInt64, state: RemoteState)? {
    guard table.has(.remoteState), let sequence = table.sequence(of: .remoteState, key: key),
      let state: RemoteState = try table.read(.remoteState, key: key)
    else { return nil }
    return (sequence, state)
  }

  var hasRemoteStates: Bool { table.has(.remoteState) }

  static func unreadable(_ error: FormatError) -> TidemarkError {
    TidemarkError(
      error.isNewer ? .formatTooNew : .damaged,
      "a record of replication cannot be read: \(error.reason)", cause: error)
  }

  // MARK: Writing

  /// - Returns: the basis, which is to be set once the commit has succeeded.
  func write(
    _ progress: PeerProgress, _ acknowledged: inout AcknowledgedRuns, _ outgoing: OutgoingBatch?,
    _ pin: RetentionPin, into batch: inout OperationBatch
  ) throws(TidemarkError) -> PeerProgress.Basis {
    for (index, value) in acknowledged.drainChanges() {
      try write(.peerSettled, key: key(index), value, into: &batch)
    }
    for sequence in progress.outbox.waiting.changed.sorted() {
      let value = try progress.outbox.waiting[sequence]?.encoded() ?? []
      try write(.peerWaiting, key: key(sequence), value, into: &batch)
    }
    var written = basis
    if progress.cursor.epoch != basis.epoch || progress.head != basis.head
      || progress.isFar(from: basis)
    {
      written = PeerProgress.Basis(
        head: progress.head, epoch: progress.cursor.epoch, pending: progress.outbox.pending)
      let bytes = try written.encoded()
      written.note(bytes.rawSpan)
      try RecordTable.add(.peerProgress, key: name, value: bytes, to: &batch)
    }
    let step = try PeerState.encode(progress, written, outgoing, acknowledged.tail, pin)
    try RecordTable.add(.pin, key: pinKey, value: step, to: &batch)
    return written
  }

  /// Writes a record, or for an empty value removes it if it exists.
  private func write(
    _ type: RecordType, key: [UInt8], _ value: [UInt8], into batch: inout OperationBatch
  ) throws(TidemarkError) {
    guard !value.isEmpty || table.sequence(of: type, key: key) != nil else { return }
    try RecordTable.add(type, key: key, value: value, to: &batch)
  }

  func write(
    _ state: RemoteState, ofKey key: [UInt8], into batch: inout OperationBatch
  ) throws(TidemarkError) {
    let value = try state.encoded(capacity: 128 + state.content.value.count)
    try RecordTable.add(.remoteState, key: key, value: value, to: &batch)
  }

  func forgetRemote(ofKey key: [UInt8], into batch: inout OperationBatch) throws(TidemarkError) {
    try write(.remoteState, key: key, [], into: &batch)
  }

  /// Commits one of the peer's records by itself.
  func record(
    _ type: RecordType, _ value: [UInt8], durability: Durability = .buffered
  ) throws(TidemarkError) {
    var batch = OperationBatch()
    try RecordTable.add(type, key: name, value: value, to: &batch)
    try note(batch, try log.commit(batch, durability: durability))
  }

  /// Updates the table by a committed batch, and writes its checkpoint if that is due.
  func note(_ batch: OperationBatch, _ result: CommitResult) throws(TidemarkError) {
    try table.note(batch, result)
    if table.isCheckpointDue { try log.list(&table) }
  }

  var pinKey: [UInt8] { Self.pinPrefix + name }
  private static let pinPrefix = Array("peer ".utf8)

  /// The peers that a store has records of.
  static func names(in table: RecordTable) -> Set<[UInt8]> {
    let pinned = table.keys(of: .pin).filter { $0.starts(with: pinPrefix) }
      .map { Array($0.dropFirst(pinPrefix.count)) }
    return Set(table.keys(of: .peerProgress) + table.keys(of: .peerStatus) + pinned)
  }

  package func removePin(into batch: inout OperationBatch) throws(TidemarkError) {
    try write(.pin, key: pinKey, [], into: &batch)
  }

  /// Removes all records of the peer.
  /// - Parameter isLast: whether no other peer is left, so that remote states go as well.
  func removeAll(isLast: Bool, into batch: inout OperationBatch) throws(TidemarkError) {
    let kept: [(RecordType, [[UInt8]])] = [
      (.peerProgress, [name]), (.peerStatus, [name]), (.pin, [pinKey]),
      (.signOut, [name]),
      (.peerSettled, numbered(.peerSettled).map(\.key)),
      (.peerWaiting, numbered(.peerWaiting).map(\.key)),
      (.alias, aliasNames), (.remoteState, isLast ? table.keys(of: .remoteState) : []),
    ]
    for (type, keys) in kept {
      for key in keys { try write(type, key: key, [], into: &batch) }
    }
  }
}

extension RecordTable {
  func read<T: StoredRecord>(_ type: RecordType, key: [UInt8]) throws(TidemarkError) -> T? {
    guard let value = try value(of: type, key: key) else { return nil }
    do { return try T(decoding: value.rawSpan) } catch { throw PeerRecords.unreadable(error) }
  }
}

/// The types of the records that a client of feeds writes.
extension RecordType {
  /// The part of a peer's progress that seldom changes; the key is the peer's name.
  package static let peerProgress = RecordType(rawValue: 32)
  /// The positions of own changes in a peer's feed; the key is u64 number and the peer's name.
  package static let peerSettled = RecordType(rawValue: 34)
  /// The version that a feed holds at a key whose value here is another; the key is that key.
  package static let remoteState = RecordType(rawValue: 35)
  /// The facts known of a peer besides its progress; the key is the peer's name.
  package static let peerStatus = RecordType(rawValue: 36)
  /// The key that an alias names; the key is the peer's name with the alias.
  package static let alias = RecordType(rawValue: 37)
  // 38 meant the bytes of a day's budget once, and is not assigned again.
  /// Why an undecided own entry is not sent; the key is u64 sequence and the peer's name.
  package static let peerWaiting = RecordType(rawValue: 39)
  /// A sign-out that was begun and not finished; the key is the peer's name.
  package static let signOut = RecordType(rawValue: 40)
}

/// Aliases, the ids that a back end gives to keys, are a record each. Its key is the peer's name
/// with the alias, so that an alias never has two keys; its value is the key, empty if removed.
extension PeerRecords {
  func aliases() throws(TidemarkError) -> KnownAliases {
    let known = KnownAliases(store: log.reader.storeID, own: log.ownLookup)
    guard table.has(.alias) else { return known }
    var changes = AliasChanges(upon: known)
    for name in aliasNames {
      guard let key = try table.value(of: .alias, key: name) else { continue }
      changes.set(KeyAlias(Array(name.dropFirst(aliasPrefix.count))), ofKey: key)
    }
    known.apply(changes)
    return known
  }

  func write(_ changes: AliasChanges, into batch: inout OperationBatch) throws(TidemarkError) {
    // Sorted, so that simulations are reproducible.
    let sorted = changes.keys.sorted { $0.key.bytes.lexicographicallyPrecedes($1.key.bytes) }
    for (alias, key) in sorted {
      try RecordTable.add(.alias, key: aliasPrefix + alias.bytes, value: key ?? [], to: &batch)
    }
  }

  var aliasNames: [[UInt8]] {
    let prefix = aliasPrefix
    return table.keys(of: .alias).filter { $0.starts(with: prefix) }
  }

  private var aliasPrefix: [UInt8] {
    var writer = ByteWriter()
    writer.blob(name)
    return writer.bytes
  }
}
