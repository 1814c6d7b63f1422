package import TidemarkEngine

/// A part of a store that a module above this one brings along, with what it keeps of the store in
/// memory. It is there from the opening until the store is let go.
package protocol StoreParticipant: AnyObject, Sendable {
  /// Looks anew at what it has in memory: another process may have written.
  func reload() throws(TidemarkError)

  /// Ends its work before the log is closed.
  /// - Parameter waits: whether to wait for its threads, one of which may let the store go.
  func close(waits: Bool)
}

extension StoreParticipant {
  package func reload() throws(TidemarkError) {}
  package func close(waits: Bool) {}
}

/// The participant that keeps caches: it takes part in commits, so that evictions are in the same
/// commit as the insert that exceeds a bound, and gives cached entries up on a full disk.
package protocol CacheParticipant: StoreParticipant {
  /// How many cached values were read into the hot cache after the opening, for the status.
  var warmed: Int { get }

  /// Whether a cache is asking its source for a key: then also a write of key and value alone goes
  /// through ``stage(_:_:waitsForRoom:answering:)``, so that the source's answer, which is older,
  /// is not kept. True of `img/7` only while somebody waits for `img/7`.
  func hasQuestion(about key: RawSpan) -> Bool

  /// Whether a key belongs to a cache, as `img/7` does to one with the prefix `img/`, or is of the
  /// reserved keys that say something about one.
  func contains(_ key: RawSpan) -> Bool

  /// Notes that a cached value was read by its key, though not through its cache.
  func noteUse(of key: [UInt8], _ sequence: UInt64)

  /// The store calls it before it deletes all keys with a prefix and labels. Of absent keys no
  /// commit tells; what sources answer that were asked about them earlier is not kept.
  func willWrite(prefix: [UInt8], _ labels: LabelFilter)

  /// Stages a batch, and with it the evictions that make room for the cached values that it puts.
  /// - Parameters:
  ///   - waitsForRoom: whether to block while too much of the log is not synced.
  ///   - check: judged and told of the commit while nobody else writes to a cache.
  func stage(
    _ operations: OperationBatch, _ durability: Durability?, waitsForRoom: Bool,
    answering check: (any CommitCheck)?
  ) throws(TidemarkError) -> CommitResult

  /// An upper bound of the disk space that evictions can free, counted no further than a goal.
  func heldBytes(upTo goal: Int) throws(TidemarkError) -> Int

  /// Evicts entries of so many bytes, those that were used least recently first.
  /// - Returns: false where there is none.
  func evict(_ bytes: Int) throws(TidemarkError) -> Bool
}

/// A condition of a commit that only a participant can judge.
package protocol CommitCheck: Sendable {
  /// - Throws: `conflict`; then nothing is committed.
  func check() throws(TidemarkError)

  /// Called once the batch is staged, before anybody else writes to a cache.
  func noteCommit()
}
