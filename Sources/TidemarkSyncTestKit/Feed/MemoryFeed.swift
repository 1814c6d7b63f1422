package import Tidemark
package import TidemarkEngine
package import TidemarkSync
package import TidemarkSyncServer

/// A feed that is no store: a list of commits in memory, which outlives its feed as a disk would.
///
/// It shows what a ``Feed`` has to do and no more, and the simulator runs it in the place of a
/// store's log. What a key held before is kept with the entry that changed it.
package final class MemoryFeed: Feed, FeedUpkeep {
  /// The calls to whatever keeps the log: one with each commit and one for each sync.
  package struct Medium: Sendable {
    package var append: (@Sendable () throws(TidemarkError) -> Void)?
    package var sync: (@Sendable () throws(TidemarkError) -> Void)?

    package init() {}
  }

  private struct State {
    var log: MemoryFeedLog
    var index: MemoryFeedIndex
    var lastTime: UInt64 = 0
    var failure: TidemarkError?
  }

  private let state: Lock<State>
  private let medium: Medium
  private let clock: any WallClock
  private let observers = Observers()

  /// Opens a feed on a log.
  /// - Parameter epoch: begins, and was never used; nil goes on in the last one, as an engine does
  ///   that has lost nothing.
  package init(
    _ log: MemoryFeedLog, epoch: UInt64?, clock: any WallClock, medium: Medium = Medium()
  ) throws(TidemarkError) {
    var log = log
    if let epoch { log.begin(epoch) }
    state = Lock(State(log: log, index: try MemoryFeedIndex(log)))
    self.clock = clock
    self.medium = medium
  }

  /// The log as it is now.
  package var log: MemoryFeedLog { state.withLock { $0.log } }
  package var id: ReplicaID { state.withLock { $0.log.id } }
  package var contents: (any FeedContents)? { nil }
  package var judgesInTurn: Bool { true }
  package var unreadableUploads: [TidemarkError] { [] }

  private func reading<R>(
    _ body: (inout State) throws(TidemarkError) -> R
  ) throws(TidemarkError) -> R {
    try state.withLock { (state: inout State) throws(TidemarkError) in
      if let failure = state.failure { throw failure }
      return try body(&state)
    }
  }

  package func look(_ question: FeedQuestion) throws(TidemarkError) -> FeedView {
    try reading { (state) throws(TidemarkError) in
      var view = FeedView(
        range: state.log.range, durable: state.log.durable, historyFrom: state.log.droppedThrough,
        now: clock.now().sinceEpoch, policies: state.index.policies)
      if let replica = question.replica {
        view.mark = state.index.marks[replica] ?? FeedMark()
        view.lease = state.index.leases[replica]
      }
      view.states = question.keys.map { state.index.states[$0] }
      return view
    }
  }

  package func settle(through position: FeedPosition) throws(TidemarkError) {
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

  // MARK: Reading

  package func heads(at offsets: [UInt64]) throws(TidemarkError) -> [UInt64: FeedHead] {
    try changes(at: offsets).mapValues(\.head)
  }

  package func values(at offsets: [UInt64]) throws(TidemarkError) -> [UInt64: [UInt8]] {
    try changes(at: offsets).filter { $1.head.kind == .put }.mapValues(\.value)
  }

  private func changes(
    at offsets: [UInt64]
  ) throws(TidemarkError) -> [UInt64: MemoryFeedLog.Change] {
    try reading { (state) throws(TidemarkError) in
      var changes: [UInt64: MemoryFeedLog.Change] = [:]
      for offset in offsets { changes[offset] = state.log.change(at: offset) }
      return changes
    }
  }

  package func read(_ query: FeedQuery) throws(TidemarkError) -> FeedPage {
    try reading { (state) throws(TidemarkError) in
      let last = min(query.through, state.log.head)
      var page = FeedPage(through: query.after)
      while page.through < last, page.through - query.after < UInt64(query.limit) {
        page.through += 1
        guard let change = state.log.change(at: page.through) else { continue }
        var row = FeedRow(head: change.head)
        if query.wantsFormer(change.head) {
          row.former = change.head.attributes.former?.placed(at: page.through)
        }
        if query.wantsLater(change.head), let held = state.index.states[change.head.key],
          held.position.offset > page.through, held.position.offset <= last
        {
          row.later = held.head
        }
        page.rows.append(row)
      }
      return page
    }
  }

  package func scan(
    into table: inout DigestTable, wants: (_ key: [UInt8], _ labels: [[UInt8]]) -> Bool
  ) throws(TidemarkError) -> UInt64 {
    let (log, states) = try reading { (state) throws(TidemarkError) in
      (state.log, state.index.states)
    }
    for (key, held) in states where !held.isDeleted && wants(key, held.head.labels) {
      guard let change = log.change(at: held.position.offset) else { continue }
      table.add(
        key: key, change.value.rawSpan, labels: held.head.labels, attachment: nil,
        offset: held.head.offset)
    }
    return log.head
  }

  // MARK: Appending

  package func append(
    _ batch: DecidedBatch, after view: FeedView
  ) throws(TidemarkError) -> FeedMark? {
    let mark = try reading { (state) throws(TidemarkError) -> FeedMark? in
      guard state.index.stands(batch, after: view),
        state.log.range.epochs.last?.epoch == view.epoch || PlantedSyncBug.isOn(.epochNotCompared)
      else { return nil }
      return try commit(batch, &state)
    }
    if mark != nil, batch.hasNews { observers.notify() }
    return mark
  }

  private func commit(
    _ batch: DecidedBatch, _ state: inout State
  ) throws(TidemarkError) -> FeedMark {
    var entries: [MemoryFeedLog.Entry] = []
    let first = state.log.head + 1
    // A commit time later than every one before.
    state.lastTime = max(
      state.lastTime + 1, UInt64(clamping: max(0, clock.now().milliseconds)) << 16)
    for entry in batch.entries {
      let change = batch.request.changes[entry.change]
      let offset = first + UInt64(entries.count)
      let row = MemoryFeedLog.Change(
        head: batch.head(
          of: entry, at: offset, previous: state.index.states[change.key]?.revision ?? 0,
          received: state.lastTime),
        value: change.content.value)
      guard case .applies = entry.kind else {
        entries.append(.loser(row))
        continue
      }
      entries.append(.change(row))
      // A later entry of the batch may follow upon it.
      try state.index.note(.change(row), at: state.log.position(of: offset))
    }
    let replica = batch.request.replica
    entries.append(.record(.feedMark, key: replica.bytes, value: try batch.markRecord()))
    try write(entries, &state)
    return state.index.marks[replica] ?? FeedMark()
  }

  package func setLease(
    _ lease: FeedLease?, of replica: ReplicaID, after view: FeedView, most: Int, writes: Bool
  ) throws(TidemarkError) {
    try reading { (state) throws(TidemarkError) in
      guard state.index.leases[replica] == view.lease else { return }
      if !writes, view.lease != nil {
        state.index.leases[replica] = lease
      } else {
        let value = try lease?.encoded() ?? []
        try write([.record(.feedLease, key: replica.bytes, value: value)], &state)
      }
    }
  }

  package func setPolicy(
    _ policy: ConflictPolicy?, prefix: [UInt8]
  ) throws(TidemarkError) -> FeedPosition {
    try reading { (state) throws(TidemarkError) in
      try write(
        [.record(.feedPolicy, key: prefix, value: PolicyTable.encode(policy))], &state)
      return state.log.position(of: state.log.head)
    }
  }

  /// Makes entries visible; a failure leaves open whether they will be there.
  private func write(
    _ entries: [MemoryFeedLog.Entry], _ state: inout State
  ) throws(TidemarkError) {
    for entry in entries {
      state.log.append(entry)
      try state.index.note(entry, at: state.log.position(of: state.log.head))
    }
    state.log.commits.append(state.log.head)
    do throws(TidemarkError) { try medium.append?() } catch {
      let failure = TidemarkError(.unknownOutcome, "the log cannot be written", cause: error)
      state.failure = failure
      throw failure
    }
  }

  /// Begins a new epoch, as an engine does before it gives lost offsets out again.
  package func begin(_ epoch: UInt64) throws(TidemarkError) {
    try reading { (state) throws(TidemarkError) in state.log.begin(epoch) }
  }

  // MARK: Upkeep

  package func space(from minimum: Int) -> LogSpace {
    LogSpace(log: state.withLock { Int($0.log.head) }, appended: 0, reclaimable: 0)
  }

  /// Drops all that later entries have replaced, and deletes that nobody has yet to read.
  package func compact(
    leaseSeconds: UInt32?, unless shouldStop: @escaping @Sendable () -> Bool
  ) throws(TidemarkError) -> CompactionSummary {
    try reading { (state) throws(TidemarkError) in
      var report = CompactionReport()
      let limit = state.index.earliestCursor(at: clock.now().sinceEpoch)
      let dropped = state.log.compact(state.index, keepingDeletesBehind: limit ?? .max)
      report.droppedEntries = dropped.entries
      report.droppedTombstones = dropped.deletes
      let leases = state.index.leases
      state.index = try MemoryFeedIndex(state.log)
      state.index.leases = leases
      return CompactionSummary(report)
    }
  }

  package func close() {
    state.withLock { $0.failure = TidemarkError(.closed, "the feed is closed") }
  }

  package func observe(_ body: @escaping @Sendable () -> Void) -> Int { observers.observe(body) }

  package func stopObserving(_ token: Int) { observers.stopObserving(token) }
}
