internal import Tidemark
internal import TidemarkEngine
internal import TidemarkSyncProtocol

/// The facts that a store knows of a peer besides its progress, for people: a record in the log,
/// written now and then. Nothing depends on it but what is shown, and the scope that counts where
/// no replicator gives one. Its bytes are in `HowReplicationWorks.md`.
struct PeerStatus: Sendable, Hashable {
  private static let version: UInt8 = 1

  var target = ""
  var scope = SyncScope.everything
  var head: UInt64 = 0
  var lastSuccess: UInt64 = 0
  var leaseEnds: UInt64 = 0
  var errorTime: UInt64 = 0
  var error = ""

  var encoded: [UInt8] {
    var writer = ByteWriter()
    writer.u8(Self.version)
    writer.text(target)
    writer.varint(UInt64(scope.labels.count))
    for label in scope.labels { writer.blob(label.bytes) }
    writer.varint(UInt64(scope.prefixBytes.count))
    for prefix in scope.prefixBytes { writer.blob(prefix) }
    writer.varint(head)
    writer.varint(lastSuccess)
    writer.varint(leaseEnds)
    writer.varint(errorTime)
    writer.text(error)
    return writer.bytes
  }
}

extension PeerStatus {
  init(decoding bytes: RawSpan) throws(FormatError) {
    var reader = ByteReader(bytes)
    try reader.version(Self.version)
    target = try reader.text()
    var labels: [EntryLabel] = []
    for _ in 0..<(try reader.varint(atMost: reader.remaining)) {
      labels.append(EntryLabel(try reader.blob()))
    }
    var prefixes: [[UInt8]] = []
    for _ in 0..<(try reader.varint(atMost: reader.remaining)) {
      prefixes.append(try reader.blob())
    }
    scope = SyncScope(labels: labels, prefixBytes: prefixes)
    head = try reader.varint()
    lastSuccess = try reader.varint()
    leaseEnds = try reader.varint()
    errorTime = try reader.varint()
    error = try reader.text()
  }
}

extension HostState {
  /// A record is written at most so often when only times have changed, in milliseconds.
  private static let recordInterval: UInt64 = 60_000

  mutating func noteAnswer(_ answer: WireMessage, _ session: SyncSession) {
    let now = engine.environment.clock.now().sinceEpoch
    status.lastSuccess = now
    status.error = ""
    status.errorTime = 0
    if let head = session.range?.head { status.head = head }
    if case .helloAnswer(let hello) = answer {
      status.leaseEnds =
        hello.isLeaseExpired ? 1 : hello.leaseSeconds.map { now + UInt64($0) * 1000 } ?? 0
    }
  }

  /// Writes down what is known of the peer, unless that was done just now. One that has never
  /// answered leaves nothing behind: it may be an address with a slip.
  mutating func recordStatus() throws(TidemarkError) {
    let session = try session()
    guard session.progress.feed != nil else { return }
    status.scope = session.scope
    if let target = settings?.target, !target.isEmpty { status.target = target }
    let age = status.lastSuccess - min(recorded?.lastSuccess ?? 0, status.lastSuccess)
    if let recorded, recorded.target == status.target, recorded.scope == status.scope,
      recorded.error == status.error, age < Self.recordInterval
    {
      return
    }
    var batch = OperationBatch()
    try RecordTable.add(.peerStatus, key: Array(name.utf8), value: status.encoded, to: &batch)
    let result = try engine.commit(batch, durability: .buffered)
    recorded = status
    try session.records.note(batch, result)
  }
}
