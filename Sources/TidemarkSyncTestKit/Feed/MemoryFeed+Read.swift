internal import Tidemark
package import TidemarkEngine
package import TidemarkSync
package import TidemarkSyncServer

extension MemoryFeed {
  package func mark(of replica: ReplicaID) throws(TidemarkError) -> FeedMark {
    try reading { (state) throws(TidemarkError) in try state.index.mark(of: replica) }
  }

  package func policies() throws(TidemarkError) -> PolicyTable {
    try reading { (state) throws(TidemarkError) in state.index.policies }
  }

  package func states(of keys: [[UInt8]]) throws(TidemarkError) -> [FeedState?] {
    try reading { (state) throws(TidemarkError) in keys.map { state.index.states[$0] } }
  }

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
      var page: FeedPage = ([], query.after)
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
          row.later = held
        }
        page.rows.append(row)
      }
      return page
    }
  }

  package func scan(
    wants: ([UInt8]) -> Bool, _ body: (FeedKey, RawSpan) throws(TidemarkError) -> Void
  ) throws(TidemarkError) -> UInt64 {
    let (log, states) = try reading { (state) throws(TidemarkError) in
      (state.log, state.index.states)
    }
    for (key, held) in states where !held.isDeleted && wants(key) {
      guard let change = log.change(at: held.position.offset) else { continue }
      try body(
        (key: key, labels: held.head.labels, attachment: nil, offset: held.head.offset),
        change.value.rawSpan)
    }
    return log.head
  }

  // MARK: Records

  package func record(
    _ type: RecordType, key: [UInt8]
  ) throws(TidemarkError) -> FeedRecord? {
    try reading { (state) throws(TidemarkError) in state.index.records[type]?[key] }
  }

  package func recordKeys(of type: RecordType) -> [[UInt8]] {
    let keys = state.withLock { Array(($0.index.records[type] ?? [:]).keys) }
    return keys.sorted { $0.rawSpan.compare(to: $1.rawSpan) < 0 }
  }
}
