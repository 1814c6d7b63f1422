internal import Tidemark
package import TidemarkEngine
internal import TidemarkSyncProtocol

package final class PeerRecords {
  let log: ReplicationLog
  let name: [UInt8]
  private(set) var table: RecordTable
  /// The progress's basis as it was written last.
  private var basis = PeerProgress.Basis()

  init(_ log: ReplicationLog, peer: [UInt8]) throws(TidemarkError) {
    self.log = log
    name = peer
    table = try log.records()
  }

  // MARK: Reading

  /// The standing that the log tells; nil where it tells none.
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
    let waiting = numbered(.peerWaiting, bytes: Self.waitingBytes)
    for (key, sequence) in waiting.sorted(by: { $0.number < $1.number }) {
      guard let reason: WaitReason = try table.read(.peerWaiting, key: key) else { continue }
      saved.progress.outbox.restore(try log.change(at: sequence), sequence, reason)
    }
    saved.settled = try settled(saved.tail)
    // One that cannot be read keeps everything until it is written again.
    saved.pin = try? RetentionPin(decoding: pin.rawSpan)
    return saved
  }

  private func settled(_ tail: [SettledRun]) throws(TidemarkError) -> SettledRuns {
    var found: [(number: UInt32, value: [UInt8])] = []
    for (key, number) in numbered(.peerSettled, bytes: Self.settledBytes) {
      guard let value = try table.value(of: .peerSettled, key: key) else { continue }
      found.append((UInt32(number), value))
    }
    do { return try SettledRuns(decoding: found, tail: tail) } catch {
      throw Self.unreadable(error)
    }
  }

  /// Bytes of the numbers in the keys of positions, and of what waits.
  private static let settledBytes = 4
  private static let waitingBytes = 8

  /// The keys of the peer's numbered records of a type, with the numbers.
  private func numbered(_ type: RecordType, bytes: Int) -> [(key: [UInt8], number: UInt64)] {
    table.keys(of: type)
      .filter { $0.count == name.count + bytes && $0.suffix(name.count).elementsEqual(name) }
      .map { key in (key, key.prefix(bytes).reversed().reduce(0) { $0 << 8 | UInt64($1) }) }
  }

  /// The key of a numbered record: the number, its lowest byte first, and the peer's name.
  private func key(_ number: UInt64, bytes: Int) -> [UInt8] {
    (0..<bytes).map { UInt8(truncatingIfNeeded: number >> (8 * $0)) } + name
  }

  /// The version that the feed holds where the value here is another, and the record's sequence.
  func remote(ofKey key: [UInt8]) throws(TidemarkError) -> (sequence: UInt64, state: RemoteState)? {
    guard table.has(.remoteState), let sequence = table.sequence(of: .remoteState, key: key),
      let state: RemoteState = try table.read(.remoteState, key: key)
    else { return nil }
    return (sequence, state)
  }

  /// Whether anything was laid beside a key's value here.
  func hasRemote(ofKey key: [UInt8]) -> Bool { table.sequence(of: .remoteState, key: key) != nil }

  var hasRemoteStates: Bool { table.has(.remoteState) }

  static func unreadable(_ error: FormatError) -> TidemarkError {
    TidemarkError(
      error.isNewer ? .formatTooNew : .damaged,
      "a record of replication cannot be read: \(error.reason)", cause: error)
  }

  // MARK: Writing

  /// - Returns: the basis, which counts once the commit has succeeded.
  func write(
    _ progress: PeerProgress, _ settled: inout SettledRuns, _ outgoing: OutgoingBatch?,
    _ pin: RetentionPin, into batch: inout OperationBatch
  ) throws(TidemarkError) -> PeerProgress.Basis {
    for (index, value) in settled.drainChanges() {
      let key = key(UInt64(index), bytes: Self.settledBytes)
      try write(.peerSettled, key: key, value, into: &batch)
    }
    for sequence in progress.outbox.waiting.changed.sorted() {
      let value = progress.outbox.waiting[sequence]?.encoded ?? []
      try write(.peerWaiting, key: key(sequence, bytes: Self.waitingBytes), value, into: &batch)
    }
    var written = basis
    if progress.cursor.epoch != basis.epoch || progress.head != basis.head
      || progress.isFar(from: basis)
    {
      written = PeerProgress.Basis(
        head: progress.head, epoch: progress.cursor.epoch, pending: progress.outbox.pending)
      let bytes = written.encoded
      written.note(bytes.rawSpan)
      try RecordTable.add(.peerProgress, key: name, value: bytes, to: &batch)
    }
    let step = PeerState.encode(progress, written, outgoing, settled.tail, pin)
    try RecordTable.add(.pin, key: pinKey, value: step, to: &batch)
    return written
  }

  /// Takes note of the basis that was written, which is committed.
  func basisWasWritten(_ written: PeerProgress.Basis) { basis = written }

  /// Writes a record, or takes it away if there is one.
  private func write(
    _ type: RecordType, key: [UInt8], _ value: [UInt8], into batch: inout OperationBatch
  ) throws(TidemarkError) {
    guard !value.isEmpty || table.sequence(of: type, key: key) != nil else { return }
    try RecordTable.add(type, key: key, value: value, to: &batch)
  }

  func write(
    _ state: RemoteState, ofKey key: [UInt8], into batch: inout OperationBatch
  ) throws(TidemarkError) {
    let value: [UInt8]
    do { value = try state.encoded() } catch {
      throw TidemarkError(.limitExceeded, error.reason, cause: error)
    }
    try RecordTable.add(.remoteState, key: key, value: value, to: &batch)
  }

  func forgetRemote(ofKey key: [UInt8], into batch: inout OperationBatch) throws(TidemarkError) {
    try write(.remoteState, key: key, [], into: &batch)
  }

  /// Writes a record of the peer's by itself.
  func record(
    _ type: RecordType, _ value: [UInt8], durability: Durability = .buffered
  ) throws(TidemarkError) {
    var batch = OperationBatch()
    try RecordTable.add(type, key: name, value: value, to: &batch)
    try note(batch, try log.commit(batch, durability: durability))
  }

  /// Takes note of a batch that was committed, and lists the records when it is time.
  func note(_ batch: OperationBatch, _ result: CommitResult) throws(TidemarkError) {
    try table.note(batch, result)
    if table.isCheckpointDue { try log.list(&table) }
  }

  var pinKey: [UInt8] { Self.pinPrefix + name }
  private static let pinPrefix = Array("peer ".utf8)

  /// The peers that a store knows, or keeps something for.
  static func names(in table: RecordTable) -> Set<[UInt8]> {
    let pinned = table.keys(of: .pin).filter { $0.starts(with: pinPrefix) }
      .map { Array($0.dropFirst(pinPrefix.count)) }
    return Set(table.keys(of: .peerProgress) + table.keys(of: .peerStatus) + pinned)
  }

  package func removePin(into batch: inout OperationBatch) throws(TidemarkError) {
    try write(.pin, key: pinKey, [], into: &batch)
  }

  /// Takes away everything that is kept of the peer.
  /// - Parameter isLast: no other peer is left that could know of remote states.
  func removeAll(isLast: Bool, into batch: inout OperationBatch) throws(TidemarkError) {
    let kept: [(RecordType, [[UInt8]])] = [
      (.peerProgress, [name]), (.peerStatus, [name]), (.peerBudget, [name]), (.pin, [pinKey]),
      (.signOut, [name]),
      (.peerSettled, numbered(.peerSettled, bytes: Self.settledBytes).map(\.key)),
      (.peerWaiting, numbered(.peerWaiting, bytes: Self.waitingBytes).map(\.key)),
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

/// The records of a feed's clients.
extension RecordType {
  /// The part of a peer's progress that seldom changes; the key is the peer's name.
  package static let peerProgress = RecordType(rawValue: 32)
  /// Where own operations stand in a peer's feed; the key is u32 number and the peer's name.
  package static let peerSettled = RecordType(rawValue: 34)
  /// The version that a feed holds at a key whose value here is another; the key is that key.
  package static let remoteState = RecordType(rawValue: 35)
  /// The facts known of a peer besides its progress; the key is the peer's name.
  package static let peerStatus = RecordType(rawValue: 36)
  /// The key that an alias names; the key is the peer's name with the alias.
  package static let alias = RecordType(rawValue: 37)
  /// How much of a day's bytes is used with a peer; the key is the peer's name.
  package static let peerBudget = RecordType(rawValue: 38)
  /// Why an undecided own entry is not sent; the key is u64 sequence and the peer's name.
  package static let peerWaiting = RecordType(rawValue: 39)
  /// A sign-out that is under way; the key is the peer's name.
  package static let signOut = RecordType(rawValue: 40)
}

/// Aliases are records by themselves: named by the peer and the alias, so that an alias never has
/// two keys; the value is the key. One that was taken away has no value.
extension PeerRecords {
  func aliases() throws(TidemarkError) -> KnownAliases {
    let known = KnownAliases(store: log.storeID, own: log.ownLookup)
    guard table.has(.alias) else { return known }
    var changes = AliasChanges(upon: known)
    for name in aliasNames {
      guard let key = try table.value(of: .alias, key: name) else { continue }
      changes.set(Alias(Array(name.dropFirst(aliasPrefix.count))), ofKey: key)
    }
    known.apply(changes)
    return known
  }

  func write(_ changes: AliasChanges, into batch: inout OperationBatch) throws(TidemarkError) {
    // In an order, so that the same happens in every run.
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
