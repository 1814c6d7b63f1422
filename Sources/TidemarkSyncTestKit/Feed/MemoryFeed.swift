package import Tidemark
package import TidemarkEngine
package import TidemarkSync
package import TidemarkSyncServer

/// A feed that is no store: a list of commits in memory, which outlives its feed as a disk would.
///
/// It shows what a ``Feed`` has to do and no more, and the simulator runs it in the place of a
/// store's log. What a key held before is kept with the entry that changed it.
package final class MemoryFeed: Feed {
  /// The calls to whatever keeps the log: one with each commit and one for each sync.
  package struct Medium: Sendable {
    package var append: (@Sendable () throws(TidemarkError) -> Void)?
    package var sync: (@Sendable () throws(TidemarkError) -> Void)?

    package init() {}
  }

  struct State {
    var log: MemoryFeedLog
    var index: MemoryFeedIndex
    var keptDeletes: UInt64?
    var lastTime: UInt64 = 0
    var failure: TidemarkError?
  }

  package let leases = Lock(FeedLeases())
  package let arriving = Lock(ArrivingAttachments())
  let state: Lock<State>
  private let medium: Medium
  private let clock: any WallClock
  private let observers = Observers()

  /// Opens a feed on a log, under an epoch that was never used.
  package init(
    _ log: MemoryFeedLog, epoch: UInt64, clock: any WallClock, medium: Medium = Medium()
  ) throws(TidemarkError) {
    var log = log
    log.begin(epoch)
    state = Lock(State(log: log, index: MemoryFeedIndex(log)))
    self.clock = clock
    self.medium = medium
  }

  /// The log as it is now.
  package var log: MemoryFeedLog { state.withLock { $0.log } }
  package var id: ReplicaID { state.withLock { $0.log.id } }
  package var now: Timestamp { clock.now() }
  package var contents: Engine? { nil }

  func reading<R>(_ body: (inout State) throws(TidemarkError) -> R) throws(TidemarkError) -> R {
    try state.withLock { (state: inout State) throws(TidemarkError) in
      if let failure = state.failure { throw failure }
      return try body(&state)
    }
  }

  package func bounds() throws(TidemarkError) -> FeedBounds {
    try reading { (state) throws(TidemarkError) in
      FeedBounds(
        range: state.log.range, durable: state.log.durable, historyFrom: state.log.droppedThrough)
    }
  }

  package func settle(through position: Position) throws(TidemarkError) {
    let isDone = try reading { (state) throws(TidemarkError) -> Bool in
      guard state.log.range.contains(position) else {
        throw TidemarkError(.unknownOutcome, "what was appended was lost before it was on the disk")
      }
      return position.offset <= state.log.durable
    }
    if isDone { return }
    let head = state.withLock { $0.log.head }
    do throws(TidemarkError) { try medium.sync?() } catch {
      // Nobody knows any more what of the rest is on the disk.
      let failure = TidemarkError(.unknownOutcome, "the log cannot be synced", cause: error)
      state.withLock { $0.failure = failure }
      throw failure
    }
    state.withLock { $0.log.durable = max($0.log.durable, head) }
  }

  // MARK: Appending

  package func append(_ batch: JudgedBatch) throws(TidemarkError) -> AppendOutcome {
    let outcome = try reading { (state) throws(TidemarkError) -> AppendOutcome in
      let mark = try state.index.mark(of: batch.request.replica)
      guard mark.mark.precedes(batch.request) else { return .markIs(mark) }
      guard state.index.policies.revision == batch.policies else { return .conflict }
      for entry in batch.entries {
        guard case .applies(let revision?) = entry.kind else { continue }
        let held = state.index.states[batch.request.changes[entry.change].key]
        let isThere = held?.isDeleted == false
        guard revision == (isThere ? held?.revision : 0) else { return .conflict }
      }
      return .appended(try commit(batch, &state))
    }
    if case .appended = outcome, batch.hasNews { observers.notify() }
    return outcome
  }

  private func commit(
    _ batch: JudgedBatch, _ state: inout State
  ) throws(TidemarkError) -> FeedMark {
    var entries: [MemoryFeedLog.Entry] = []
    let first = state.log.head + 1
    let time = stamp(&state)
    for entry in batch.entries {
      let change = batch.request.changes[entry.change]
      let offset = first + UInt64(entries.count)
      let held = state.index.states[change.key]
      let row = MemoryFeedLog.Change(
        head: batch.head(
          of: entry, at: offset, previous: held?.revision ?? 0, received: time),
        value: change.content.value)
      guard case .applies = entry.kind else {
        entries.append(.loser(row))
        continue
      }
      entries.append(.change(row))
      state.index.apply(row, at: state.log.position(of: offset))
    }
    let position = state.log.position(of: first + UInt64(entries.count))
    let record = batch.markRecord
    entries.append(.record(.feedMark, key: batch.request.replica.bytes, value: record))
    try write(entries, &state)
    return try FeedMark(record, at: position)
  }

  @discardableResult
  package func append(
    _ type: RecordType, _ records: [(key: [UInt8], value: [UInt8])]
  ) throws(TidemarkError) -> Position {
    try reading { (state) throws(TidemarkError) in
      try write(records.map { .record(type, key: $0.key, value: $0.value) }, &state)
      return state.log.position(of: state.log.head)
    }
  }

  /// Makes entries visible; a failure leaves open whether they will be there.
  private func write(
    _ entries: [MemoryFeedLog.Entry], _ state: inout State
  ) throws(TidemarkError) {
    for entry in entries {
      state.log.append(entry)
      state.index.note(entry, at: state.log.position(of: state.log.head))
    }
    state.log.commits.append(state.log.head)
    do throws(TidemarkError) { try medium.append?() } catch {
      let failure = TidemarkError(.unknownOutcome, "the log cannot be written", cause: error)
      state.failure = failure
      throw failure
    }
  }

  /// A commit time later than every one before.
  private func stamp(_ state: inout State) -> UInt64 {
    let now = UInt64(clamping: max(0, clock.now().milliseconds)) << 16
    state.lastTime = max(state.lastTime + 1, now)
    return state.lastTime
  }

  // MARK: Upkeep

  package func keepDeletes(behind offset: UInt64?) { state.withLock { $0.keptDeletes = offset } }

  package func space(from minimum: Int) -> LogSpace {
    LogSpace(log: state.withLock { Int($0.log.head) }, appended: 0, reclaimable: 0)
  }

  /// Drops all that later entries have replaced, and deletes that nobody has yet to read.
  package func compact(
    unless shouldStop: @escaping @Sendable () -> Bool
  ) throws(TidemarkError) -> CompactionSummary {
    try reading { (state) throws(TidemarkError) in
      var report = CompactionReport()
      let dropped = state.log.compact(
        state.index, keepingDeletesBehind: state.keptDeletes ?? .max)
      report.droppedEntries = dropped.entries
      report.droppedTombstones = dropped.deletes
      state.index = MemoryFeedIndex(state.log)
      return CompactionSummary(report)
    }
  }

  package func close() {
    state.withLock { $0.failure = TidemarkError(.closed, "the feed is closed") }
  }

  // MARK: News

  package func observe(_ body: @escaping @Sendable () -> Void) -> Int { observers.observe(body) }

  package func stopObserving(_ token: Int) { observers.stopObserving(token) }
}
