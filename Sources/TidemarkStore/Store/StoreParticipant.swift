package import TidemarkEngine

/// A part of a store that a higher module adds, such as its caches, with state in memory that is
/// derived from the store. It exists from opening until the store's last reference goes.
package protocol StoreParticipant: AnyObject, Sendable {
  /// Brings its state in memory up to date: another process may have written.
  func reload() throws(TidemarkError)

  /// Ends its work before the log is closed; may be called more than once.
  /// - Parameter waits: whether to join its threads; the store's `deinit`, which may run on one of
  ///   them, must not.
  func close(waits: Bool)
}

extension StoreParticipant {
  package func reload() throws(TidemarkError) {}
  package func close(waits: Bool) {}
}

/// The participant that owns a store's caches. A cache holds a server's data under the keys with
/// its prefix, and asks its source, the server, for keys that it lacks. Batches are staged through
/// it, so that evictions are in the same commit as the put that exceeds a bound of the cache.
package protocol CacheParticipant: StoreParticipant {
  /// How many cached values were read into the hot cache after opening, for the status.
  var warmed: Int { get }

  /// Whether a cache is waiting for its source's answer about exactly this key. Then even a single
  /// put or delete goes through ``stage(_:_:waitsForRoom:answering:)``, which voids the answer: it
  /// is older than the write.
  func hasQuestion(about key: RawSpan) -> Bool

  /// Whether a key belongs to a cache, as `img/7` does to one with the prefix `img/`, or is one of
  /// the library's ``ReservedKeys``.
  func contains(_ key: RawSpan) -> Bool

  /// Records for the order of eviction that a cached value was read past its cache.
  func noteUse(of key: [UInt8], _ sequence: UInt64)

  /// Voids the answers that sources have yet to give about keys with a prefix and labels. The store
  /// calls it before it deletes all such keys: its batch has no deletes of absent keys, which would
  /// void answers about these.
  func willWrite(prefix: [UInt8], _ labels: LabelFilter)

  /// Stages a batch, and with it the evictions that make room for the cached values that it puts.
  /// - Parameters:
  ///   - waitsForRoom: whether to block while too much of the log is not synced.
  ///   - check: for a batch that keeps a source's answer; called under the lock of all caches, so
  ///     that no other write to a cache comes between the check and the commit.
  func stage(
    _ operations: OperationBatch, _ durability: Durability?, waitsForRoom: Bool,
    answering check: (any CommitCheck)?
  ) throws(TidemarkError) -> CommitResult

  /// An upper bound of the disk space that evictions can free, counted no further than a goal.
  func heldBytes(upTo goal: Int) throws(TidemarkError) -> Int

  /// Evicts cached entries of at least so many bytes if there are, least recently used first.
  /// - Returns: false where there is nothing to evict.
  func evict(_ bytes: Int) throws(TidemarkError) -> Bool
}

/// A condition of a commit that only a participant can judge: that a source's answer is current.
package protocol CommitCheck: Sendable {
  /// - Throws: `conflict`; then nothing is committed.
  func check() throws(TidemarkError)

  /// Called once the batch is staged, under the same lock as ``check()``.
  func noteCommit()
}
