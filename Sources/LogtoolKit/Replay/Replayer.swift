internal import TidemarkEngine

/// Appends a source's entries to a target, in the source's order and in atomic batches.
struct Replayer {
  /// A batch is cut, where a batch of the source ends, once it has so many entries or bytes.
  private static let entries = 1000
  private static let bytes = 4 << 20
  /// Where no end of a batch comes, as after a compaction, it is cut here.
  private static let mostEntries = 65_536
  private static let mostBytes = 128 << 20

  private let console: Console
  private let source: Engine
  /// Nil only counts.
  private let target: Engine?
  private let sourceReplica: [UInt8]
  private let targetReplica: [UInt8]
  private var batch = OperationBatch()
  /// Which keys the batch's first operations leave present; worked out when a touch asks.
  private var presence: [[UInt8]: Bool] = [:]
  private var presenceCount = 0
  private(set) var sent = 0
  /// Entries that the target wrote itself and the source has from a replay.
  private(set) var echoes = 0
  private(set) var isInterrupted = false

  /// - Parameters:
  ///   - target: nil only counts.
  ///   - targetReplica: the target's replica; nil when there is no target yet.
  init(_ console: Console, source: Engine, target: Engine?, targetReplica: [UInt8]?) {
    self.console = console
    self.source = source
    self.target = target
    sourceReplica = source.replicaID
    self.targetReplica = targetReplica ?? []
  }

  /// Sends the entries of a range of sequences.
  mutating func send(from first: UInt64, through last: UInt64) throws(TidemarkError) {
    guard first <= last else { return }
    var cursor = LogCursor(source, from: first, through: last)
    var progress = Progress(
      console, "replaying", unit: .entries, total: Int(clamping: last - first + 1))
    defer { progress.finish() }
    while !isInterrupted, let entry = try cursor.next() {
      try add(entry)
      if isFull(atEndOfBatch: entry.head.endsBatch) {
        try commit()
        progress.update(Int(clamping: entry.sequence - first + 1))
        isInterrupted = console.isInterrupted()
      }
    }
    try commit()
  }

  private func isFull(atEndOfBatch: Bool) -> Bool {
    let count = batch.count
    let bytes = batch.arena.count
    if atEndOfBatch { return count >= Self.entries || bytes >= Self.bytes }
    return count >= Self.mostEntries || bytes >= Self.mostBytes
  }

  private mutating func add(_ entry: LogEntry) throws(TidemarkError) {
    let attributes = try entry.attributes()
    if let origin = attributes.origin, origin.replica == targetReplica {
      echoes += 1
      return
    }
    sent += 1
    guard target != nil else { return }
    switch entry.head.kind {
    case .put:
      try appendPut(
        entry, labels: entry.labels, valueSequence: entry.sequence, attributes)
    case .touch where try !isPresent(entry.key):
      // Without its put a touch would leave no entry; so the value comes along.
      let info = try source.info(entry)
      try appendPut(
        entry, labels: info.labels, valueSequence: info.valueSequence, info.attributes)
    default:
      try batch.add(
        entry.head.kind, key: entry.key.rawSpan, attributes: sendable(attributes, of: entry),
        isForced: true)
    }
  }

  private mutating func appendPut(
    _ entry: LogEntry, labels: [[UInt8]], valueSequence: UInt64, _ attributes: EntryAttributes
  ) throws(TidemarkError) {
    let key = entry.key
    let attributes = sendable(attributes, of: entry)
    let labelSet = try batch.addLabelSet(labels)
    try source.withValue(of: valueSequence) { (value, _) throws(TidemarkError) in
      try batch.add(
        .put, key: key.rawSpan, value: value, labelSet: labelSet, attributes: attributes)
    }
  }

  /// What goes along: the origin is the source's own operation.
  private func sendable(_ attributes: EntryAttributes, of entry: LogEntry) -> EntryAttributes {
    var attributes = attributes
    attributes.origin = EntryAttributes.Origin(replica: sourceReplica, sequence: entry.sequence)
    // Edges are sequences of the source and mean nothing elsewhere.
    attributes.after = []
    return attributes
  }

  /// Whether a key is in the target, as it will be after what is in the batch.
  private mutating func isPresent(_ key: [UInt8]) throws(TidemarkError) -> Bool {
    for operation in batch.operations[presenceCount...] {
      presence[[UInt8](copying: batch.key(of: operation))] = !operation.kind.removes
    }
    presenceCount = batch.count
    if let known = presence[key] { return known }
    return try target?.contains(key.rawSpan) ?? false
  }

  private mutating func commit() throws(TidemarkError) {
    if let target, !batch.isEmpty { try target.commit(batch, durability: .buffered) }
    batch.removeAll()
    presence.removeAll()
    presenceCount = 0
  }
}
