package import Tidemark
package import TidemarkEngine

extension StoreFeed {
  package func space(from minimum: Int) throws(TidemarkError) -> SyncSpace {
    let space = try engine.space(from: minimum)
    return SyncSpace(log: space.log, appended: space.appended, reclaimable: space.reclaimable)
  }

  package func compact(
    unless shouldStop: @escaping @Sendable () -> Bool
  ) throws(TidemarkError) -> CompactionSummary {
    CompactionSummary(try engine.compact(CompactionOptions(shouldStop: shouldStop)))
  }
}
