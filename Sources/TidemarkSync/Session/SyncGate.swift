internal import Tidemark
internal import TidemarkEngine
internal import TidemarkSyncProtocol

/// The calls that a session may make, as the budget says.
struct SyncGate: Sendable, Hashable {
  /// Whether hello and what follows are all, and of own entries those of `leastPriority`.
  var isNarrow = false
  /// Nil for none, where it is narrow.
  var leastPriority: Int?
  /// About how many bytes a batch or page may have.
  var bytes = Int.max
}

extension SyncSession {
  /// The next call of those that the budget lets through; see ``next(_:)``.
  func next(_ direction: SyncDirection, through gate: SyncGate) throws -> Call? {
    self.gate = gate
    reads = direction.pulls
    // As of a batch that could not be formed; the user may have decided since.
    tooManyWaiting = nil
    guard gate.isNarrow else { return try next(direction) }
    guard range != nil else { return .hello(hello()) }
    // A comparison can be much.
    guard progress.resync == nil, direction.pushes, let least = gate.leastPriority else {
      return nil
    }
    if let formed {
      guard try isUrgent(formed, least) else { return nil }
      return try call(for: formed)
    }
    try resolveWaiting()
    let keys = try keysToFetch()
    if !keys.isEmpty { return .values(try valuesRequest(keys)) }
    guard let batch = try formBatch() else { return nil }
    return .push(try request(for: batch))
  }

  /// Whether a batch has something urgent in it, or such waits behind it.
  private func isUrgent(_ batch: FormedBatch, _ least: Int) throws(TidemarkError) -> Bool {
    for item in batch.items {
      if let change = try log.change(at: item.sequence),
        change.attributes.priority >= Int64(least)
      {
        return true
      }
    }
    for sequence in progress.again.sequences {
      if let change = try log.change(at: sequence), !held.contains(sequence),
        change.attributes.priority >= Int64(least)
      {
        return true
      }
    }
    try urgent.lookThrough(self, progress)
    for change in urgent.inOrder where isPending(change, in: progress) {
      if change.attributes.priority >= Int64(least) { return true }
    }
    return least <= 0 && progress.frontier < log.head
  }

  /// About how many bytes a batch may have.
  var batchBytes: Int { min(limits.bytes, gate.bytes) }
}

extension Forming {
  /// Takes what is urgent enough only, where not everything may go.
  mutating func takeNarrow(_ least: Int) throws(TidemarkError) {
    // Nothing else goes that would bring it nearer.
    try session.urgent.lookThrough(session, progress)
    try takeUrgent(atLeast: Int64(least))
    for sequence in progress.again.sequences {
      if isFull { return }
      if held.contains(sequence) || !progress.again.contains(sequence) { continue }
      guard let change = try session.log.change(at: sequence),
        change.attributes.priority >= Int64(least)
      else { continue }
      if try dependsOnVerdict(change) { return }
      try take(change)
    }
    // Others than those of a high priority are found in the order of the log only.
    if least <= 0 { try takeNew(atLeast: Int64(least)) }
  }

  /// Takes what the log has behind the frontier; what may not go now is kept for later.
  private mutating func takeNew(atLeast least: Int64) throws(TidemarkError) {
    let head = session.log.head
    var cursor = session.log.entries(from: progress.frontier + 1, through: head)
    while !isFull, let entry = try cursor.next() {
      let change = try LoggedChange(entry)
      if !change.isOwn {
        if try isCached(change) { return }
      } else if !progress.ahead.contains(change.sequence), !held.contains(change.sequence) {
        if try dependsOnVerdict(change) { return }
        if change.attributes.priority >= least {
          try take(change)
        } else {
          progress.again.insert(change.sequence)
          if change.attributes.priority < 0 { session.setAside.low.insert(change.sequence) }
        }
      }
      passed(change.sequence)
    }
  }
}

extension SyncSession.Call {
  /// The bytes of the call that a budget counts.
  /// - Parameter charged: the batch that was counted last: when it goes again, large values of it
  ///   go on from where they were.
  func countedBytes(after charged: BatchID?) -> Int {
    if case .attach(let request) = self { return request.bytes.count }
    guard case .push(let request) = self else { return 0 }
    let goesAgain = request.batchID == charged
    return request.changes.reduce(0) { sum, change in
      let isLarge = change.content.value.count > BlobID.leastLength
      return sum + change.key.count + (goesAgain && isLarge ? 0 : change.content.countedBytes)
    }
  }
}

extension SyncSession.Answer {
  /// The bytes of the answer that a budget counts.
  var countedBytes: Int {
    let entries: [FeedEntry]
    switch self {
    case .pull(let page): entries = page.entries
    case .values(let values): entries = values.entries
    case .fetch(let answer): return answer.bytes?.count ?? 0
    case .hello, .push, .digest, .attach: return 0
    }
    return entries.reduce(0) { $0 + $1.key.count + $1.content.countedBytes }
  }
}

extension SyncContent {
  fileprivate var countedBytes: Int {
    64 + value.count + (hash?.count ?? 0) + labels.reduce(0) { $0 + $1.bytes.count }
  }
}
