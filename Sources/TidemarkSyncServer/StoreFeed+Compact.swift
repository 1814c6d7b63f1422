package import Tidemark
package import TidemarkEngine

extension StoreFeed {
  package func space(from minimum: Int) throws(TidemarkError) -> SyncSpace {
    let space = try engine.space(from: minimum)
    return SyncSpace(log: space.log, appended: space.appended, reclaimable: space.reclaimable)
  }

  private static let ownRecords: Set<RecordType> = [
    .feedMark, .feedLease, .feedPolicy, .feedUpload,
  ]

  package func compact(
    unless shouldStop: @escaping @Sendable () -> Bool
  ) throws(TidemarkError) -> CompactionSummary {
    let engine = engine
    let records = records
    // A loser goes with the history that it is part of.
    let historyFrom = Lock<UInt64?>(nil)
    let durable = Lock<UInt64>(0)
    return CompactionSummary(
      try engine.compact(
        CompactionOptions(shouldStop: shouldStop) { name, sequence in
          if name.type == .loser {
            let limit = historyFrom.withLock { known in
              known = known ?? (try? engine.bounds())?.historyFrom ?? 0
              return known ?? 0
            }
            return limit > 1 && sequence <= limit
          }
          guard Self.ownRecords.contains(name.type) else { return false }
          let newest = records.withLock { table in
            // Not known to the table yet: it stays.
            sequence <= table.through ? table.sequence(of: name.type, key: name.key) ?? 0 : sequence
          }
          // A cut of the power would take a newer mark with it that is not on the disk, and the one
          // before is gone then. A name that was taken away can go early: its owner begins anew.
          return newest != sequence
            && durable.withLock { known in
              if known < newest { known = (try? engine.bounds())?.durable ?? 0 }
              return newest <= known
            }
        }))
  }
}
