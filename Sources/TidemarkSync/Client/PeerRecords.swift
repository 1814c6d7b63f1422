internal import Tidemark
package import TidemarkEngine

/// The records of one peer in a store's log.
package final class PeerRecords {
  let engine: Engine
  private let peer: [UInt8]
  var name: [UInt8] { peer }
  private(set) var table: RecordTable

  init(_ engine: Engine, peer: [UInt8]) throws(TidemarkError) {
    self.engine = engine
    self.peer = peer
    table = try RecordTable(engine)
  }

  // MARK: Reading

  func progress() throws(TidemarkError) -> PeerProgress? {
    try read(.peerProgress, peer) { (bytes) throws(FormatError) in
      try PeerProgress(decoding: bytes)
    }
  }

  func formed() throws(TidemarkError) -> FormedBatch? {
    try read(.peerFormed, peer) { (bytes) throws(FormatError) in
      try FormedBatch(decoding: bytes)
    }
  }

  func settled() throws(TidemarkError) -> SettledRuns {
    var found: [(number: UInt32, value: [UInt8])] = []
    for key in Self.settledNames(of: peer, in: table) {
      guard let value = try table.value(of: .peerSettled, key: key) else { continue }
      found.append((key.prefix(4).reversed().reduce(0) { $0 << 8 | UInt32($1) }, value))
    }
    do { return try SettledRuns(decoding: found) } catch { throw Self.unreadable(error) }
  }

  /// The names of a peer's records of positions.
  static func settledNames(of peer: [UInt8], in table: RecordTable) -> [[UInt8]] {
    table.keys(of: .peerSettled).filter {
      $0.count == peer.count + 4 && $0.suffix(peer.count).elementsEqual(peer)
    }
  }

  /// The peer's pin; nil when there is none, or it cannot be read: that one keeps everything until
  /// it is written again.
  func pin() throws(TidemarkError) -> RetentionPin? {
    guard let value = try table.value(of: .pin, key: pinKey) else { return nil }
    return try? RetentionPin(decoding: value.rawSpan)
  }

  /// The version that the feed holds at a key whose value here is another, and the sequence of the
  /// record.
  func remote(ofKey key: [UInt8]) throws(TidemarkError) -> (sequence: UInt64, state: RemoteState)? {
    guard table.has(.remoteState), let sequence = table.sequence(of: .remoteState, key: key),
      let state = try read(
        .remoteState, key,
        { (bytes) throws(FormatError) in try RemoteState(decoding: bytes) })
    else { return nil }
    return (sequence, state)
  }

  /// Whether anything was laid beside a value here.
  var hasRemoteStates: Bool { table.has(.remoteState) }

  private func read<T>(
    _ type: RecordType, _ key: [UInt8], _ decode: (RawSpan) throws(FormatError) -> T
  ) throws(TidemarkError) -> T? {
    guard let value = try table.value(of: type, key: key) else { return nil }
    do { return try decode(value.rawSpan) } catch { throw Self.unreadable(error) }
  }

  private static func unreadable(_ error: FormatError) -> TidemarkError {
    TidemarkError(
      error.isNewer ? .formatTooNew : .damaged,
      "a record of replication cannot be read: \(error.reason)", cause: error)
  }

  // MARK: Writing

  func write(
    _ progress: PeerProgress, _ settled: [(index: UInt32, value: [UInt8])],
    into batch: inout OperationBatch
  ) throws(TidemarkError) {
    try RecordTable.add(.peerProgress, key: peer, value: progress.encoded, to: &batch)
    for (index, value) in settled where !value.isEmpty || hasSettled(index) {
      try RecordTable.add(.peerSettled, key: settledKey(index), value: value, to: &batch)
    }
  }

  func write(_ pin: RetentionPin, into batch: inout OperationBatch) throws(TidemarkError) {
    try RecordTable.add(.pin, key: pinKey, value: pin.encoded, to: &batch)
  }

  func write(_ formed: FormedBatch, into batch: inout OperationBatch) throws(TidemarkError) {
    try RecordTable.add(.peerFormed, key: peer, value: formed.encoded, to: &batch)
  }

  /// A batch is settled: its record is worth taking away when it takes more than that does.
  func remove(_ formed: FormedBatch, from batch: inout OperationBatch) throws(TidemarkError) {
    guard formed.items.count > Self.itemsToRemove else { return }
    try RecordTable.add(.peerFormed, key: peer, value: [], to: &batch)
  }

  private static let itemsToRemove = 16

  func write(
    _ state: RemoteState, ofKey key: [UInt8], into batch: inout OperationBatch
  ) throws(TidemarkError) {
    let value = state.encoded
    guard value.count <= Limits.valueBytes else {
      // No peer of ours has such a value; it may pass when what waits here is gone.
      throw TidemarkError(
        .limitExceeded,
        "what the peer has at \(Key(key)) is too large to be kept beside a pending change: it has "
          + "\(state.content.value.count) bytes")
    }
    try RecordTable.add(.remoteState, key: key, value: value, to: &batch)
  }

  func forgetRemote(
    ofKey key: [UInt8], into batch: inout OperationBatch
  ) throws(TidemarkError) {
    guard table.sequence(of: .remoteState, key: key) != nil else { return }
    try RecordTable.add(.remoteState, key: key, value: [], to: &batch)
  }

  /// Takes note of a batch that was committed, and lists the records when it is time.
  func note(_ batch: OperationBatch, _ result: CommitResult) throws(TidemarkError) {
    try table.note(batch, result)
    if table.isCheckpointDue { try table.writeCheckpoint() }
  }

  var pinKey: [UInt8] { Self.pinPrefix + peer }
  private static let pinPrefix = Array("peer ".utf8)

  /// The peers for which something is kept.
  static func pinned(in table: RecordTable) -> [[UInt8]] {
    table.keys(of: .pin).filter { $0.starts(with: pinPrefix) }
      .map { Array($0.dropFirst(pinPrefix.count)) }
  }

  /// Lets go of what is kept for the peer.
  package func removePin(into batch: inout OperationBatch) throws(TidemarkError) {
    guard table.sequence(of: .pin, key: pinKey) != nil else { return }
    try RecordTable.add(.pin, key: pinKey, value: [], to: &batch)
  }

  private func hasSettled(_ index: UInt32) -> Bool {
    table.sequence(of: .peerSettled, key: settledKey(index)) != nil
  }

  private func settledKey(_ index: UInt32) -> [UInt8] {
    var writer = ByteWriter()
    writer.u32(index)
    return writer.bytes + peer
  }
}
