internal import Tidemark
internal import TidemarkEngine

extension SyncSession {
  /// Whether an own entry is still to be sent or waits: no verdict on it has come.
  func isPending(_ change: LoggedChange, in progress: PeerProgress) -> Bool {
    guard change.isOwn else { return false }
    let sequence = change.sequence
    if progress.waiting[sequence] != nil || progress.again.contains(sequence) { return true }
    if sequencesInFlight.contains(sequence) { return true }
    return sequence > progress.frontier && !progress.ahead.contains(sequence)
  }

  /// Forms the next batch of what is pending, and writes down that it was formed.
  /// - Returns: nil when nothing is pending that may be sent now.
  func formBatch() throws(TidemarkError) -> FormedBatch? {
    var forming = Forming(self)
    try forming.run()
    guard !forming.items.isEmpty else {
      // What was looked at in vain need not be looked at again; it is written with what comes.
      progress = forming.progress
      return nil
    }
    let batch = FormedBatch(
      number: progress.number + 1, batchID: BatchID(engine.environment.random.next() | 1),
      items: forming.items)
    #if TIDEMARK_PLANTED
      if PlantedSyncBug.isOn(.formedNotKept) {
        progress = forming.progress
        formed = batch
        return batch
      }
    #endif
    var operations = OperationBatch()
    forming.progress.underWay = batch.batchID
    try records.write(forming.progress, [], into: &operations)
    try records.write(batch, into: &operations)
    let kept = try writePin(forming.progress, batch, into: &operations)
    let result = try engine.commit(operations, durability: .durable)
    progress = forming.progress
    formed = batch
    pin = kept
    try records.note(operations, result)
    return batch
  }

  /// The batch as it is sent: the same each time. Where compaction has dropped what an entry
  /// held, which happens only to entries that newer ones have replaced, an empty batch goes in
  /// its place, with another id: whichever of both the peer holds decides.
  func request(for batch: FormedBatch) throws(TidemarkError) -> PushRequest {
    var changes: [PushedChange] = []
    for item in batch.items {
      guard !isGivenUp, let change = try engine.change(at: item.sequence) else {
        return PushRequest(
          replica: replica, number: batch.number, batchID: Self.emptyID(batch.batchID),
          changes: [])
      }
      changes.append(
        PushedChange(
          sequence: change.sequence, kind: change.kind == .put ? .put : .delete, key: change.key,
          content: try engine.content(of: change), base: item.base,
          commitTime: change.commitTime, time: change.attributes.time))
    }
    return PushRequest(
      replica: replica, number: batch.number, batchID: batch.batchID, changes: changes)
  }

  /// The id of the empty batch that takes another's place.
  static func emptyID(_ id: BatchID) -> BatchID { BatchID(~id.bits) }
}

extension LoggedChange {
  /// Where an entry that came from the feed stands there.
  var position: Position? {
    guard attributes.origin != nil, case .position(let epoch, let offset) = attributes.base
    else { return nil }
    return Position(epoch: epoch, offset: offset)
  }
}

/// Walks the pending entries and takes the first that fit into a batch.
private struct Forming {
  let session: SyncSession
  var progress: PeerProgress
  var items: [FormedBatch.Item] = []
  private var bytes = 0
  private var taken: Set<[UInt8]> = []
  private let most: Int

  init(_ session: SyncSession) {
    self.session = session
    progress = session.progress
    most = min(
      session.limits.changes,
      progress.batchLimit == 0 ? .max : Int(clamping: progress.batchLimit))
  }

  private var isFull: Bool {
    items.count >= most || bytes >= session.limits.bytes
  }

  mutating func run() throws(TidemarkError) {
    for sequence in progress.again.sequences {
      if isFull { return }
      guard let change = try session.engine.change(at: sequence) else {
        progress.again.remove(sequence)
        progress.lost.remove(sequence)
        continue
      }
      try take(change)
    }
    let head = session.engine.lastSequence
    var cursor = LogCursor(session.engine, from: progress.frontier + 1, through: head)
    while !isFull {
      guard let entry = try cursor.next() else {
        passed(head)
        return
      }
      let change = try LoggedChange(entry)
      if change.isOwn, !progress.ahead.contains(change.sequence) { try take(change) }
      passed(change.sequence)
    }
  }

  private mutating func passed(_ sequence: UInt64) {
    progress.frontier = max(progress.frontier, sequence)
    progress.ahead.removeAll(through: sequence)
  }

  /// Takes a key's newest change in the place of this one, unless that is taken or waits.
  private mutating func take(_ change: LoggedChange) throws(TidemarkError) {
    progress.again.remove(change.sequence)
    progress.lost.remove(change.sequence)
    guard let newest = try session.engine.newestChange(ofKey: change.key), newest.isOwn,
      !taken.contains(change.key)
    else { return }
    let sequence = newest.sequence
    if sequence != change.sequence {
      // It is pending by itself, or it is not pending at all.
      guard session.isPending(newest, in: progress) else { return }
    }
    guard try session.isWithin(newest) else { return }
    if let waiting = session.waitingKeys[change.key], let reason = progress.waiting[waiting] {
      guard waiting != sequence else { return }
      progress.waiting[waiting] = nil
      switch reason {
      case .conflict:
        // The resolver runs on the newest local value.
        progress.waiting[sequence] = reason
        session.waitingKeys[change.key] = sequence
        if sequence > progress.frontier { progress.ahead.insert(sequence) }
        return
      // A new change is the user's decision, and supersedes what was parked. One that was made
      // after what lost is judged by itself.
      case .lost, .parked, .needsDecision: session.waitingKeys[change.key] = nil
      }
    }
    let base = try session.base(of: newest)
    taken.insert(change.key)
    if sequence > progress.frontier { progress.ahead.insert(sequence) }
    progress.again.remove(sequence)
    // Put, then deleted before anybody heard of it.
    if newest.kind == .delete, base == .absent { return }
    items.append(FormedBatch.Item(sequence: sequence, base: base))
    bytes += newest.key.count + 64
    if newest.kind == .put {
      bytes += try session.engine.withValue(of: sequence) { (value, _) in value.byteCount }
    }
  }
}
