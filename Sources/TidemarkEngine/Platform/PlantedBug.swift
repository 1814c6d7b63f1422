/// Mistakes that can be switched on, one at a time, to see that the campaigns notice them.
///
/// Only a build with `TIDEMARK_PLANTED=1` can make them, as `Tools/torture planted` has one: in
/// others what asks for them is compiled and left out.
package enum PlantedBug: String, Sendable, CaseIterable {
  /// The active segment is never synced, while `durable` is answered.
  case segmentNotSynced
  /// Writes count as durable at once.
  case durableTooSoon
  /// A sync that failed is tried again, and believed.
  case failedSyncRetried
  /// The name of a new segment is not synced.
  case logDirectoryNotSynced
  /// The first copy of MANIFEST is not synced before the second is written.
  case firstManifestNotSynced
  /// Only one copy of MANIFEST is written, over itself.
  case oneManifestCopy
  /// A compacted segment is not synced before MANIFEST lists it.
  case compactedSegmentNotSynced
  /// The name of a compacted segment is not synced before MANIFEST lists it.
  case compactedNameNotSynced
  /// Compaction removes its inputs before MANIFEST says so.
  case inputsRemovedFirst
  /// Values are returned whatever their checksum says.
  case blockChecksumIgnored
  /// Heads are decoded whatever their checksum says.
  case headsChecksumIgnored
  /// Locators are read whatever their checksum says.
  case locatorChecksumIgnored
  /// Compaction drops tombstones whose keys have older versions.
  case tombstoneDroppedEarly
  /// Compaction drops tombstones and keeps the runs that know the keys from before.
  case outdatedImageKept
  /// Compaction merges versions of a key in any order.
  case mergedOutOfOrder
  /// Compaction leaves out the window that it was gathering last.
  case windowForgotten
  /// Compaction drops versions that an open view needs.
  case viewsForgotten
  /// An image is written before what it knows is durable, and kept when that was lost.
  case imageAheadOfLog
  /// Opening forgets sequences whose entries were compacted away, and gives them out again.
  case sequenceReused
  /// Recovery believes what the last process wrote and might not have synced.
  case tailNotRewritten
  /// Recovery keeps the beginning of a batch that was never finished.
  case halfBatchKept
  /// Recovery takes damage to what was synced for a write that stopped midway.
  case damageTakenForTornTail
  /// The last entry of a segment is lost when the segment is sealed.
  case lastEntryLostAtSealing
  /// The cache answers with the value before the last write.
  case cacheNotInvalidated
  /// An eviction takes whatever value the key has.
  case ownedEvicted
  /// A cached value is written as the user's own.
  case cachedAsOwned
  /// A cached value counts as validated when it was read last.
  case readsExtendValidity
  /// An answer is kept though something was said since it was asked for.
  case overtakenAnswerKept
  /// A 304 changes all fields of a stored response but what it varies by.
  case varyNotRenewed
  /// Attachments that caches gave up stay until a compaction.
  case cacheSweepForgotten
  /// The switch to a new generation of a collection is two commits.
  case generationSwitchedHalf
  /// The rows of indexes are committed behind the objects.
  case rowsInOwnCommit
  /// An object that is written over keeps the rows that it had.
  case formerRowsKept
  /// A program that does not know the indexes of a collection leaves no marks.
  case unknownWriterUnmarked
  /// Fields that a program does not know stay in their place, whatever stands there now.
  case unknownFieldsByPlace
  /// A query by an index does not tell of objects that are in none.
  case unindexedUntold
  /// An index is kept though upcasts and defaults say something else of the same bytes, and no
  /// object is looked at for that.
  case formNotInIndex
  /// A projection's checkpoint says that it has read everything.
  case projectionAheadOfState
  /// Compaction does not keep what projections have yet to read.
  case projectionUnpinned
  /// Compaction drops evictions that keep older values from coming back.
  case evictionDroppedEarly
  /// Compaction drops cached versions that something newer names, and leaves the name.
  case cachedLinkDangles
  /// A key that is written over keeps its labels.
  case labelsNotUpdated
  /// A run over others leaves deletes out.
  case deleteForgottenOverRuns
  /// A run over others does not say which of its keys have lost a label.
  case lostLabelForgotten
  /// An entry after a delete does not link to what was before.
  case linkEndsAtDelete

  #if TIDEMARK_PLANTED
    private static let planted = Lock<PlantedBug?>(nil)

    /// Takes a bug into the engine, or all of them out again.
    package static func plant(_ bug: PlantedBug?) { planted.withLock { $0 = bug } }

    /// Whether the engine is to make this mistake.
    package static func isOn(_ bug: PlantedBug) -> Bool { planted.withLock { $0 == bug } }
  #else
    /// Whether the engine is to make this mistake: never, so that the compiler leaves it out.
    @inlinable package static func isOn(_ bug: PlantedBug) -> Bool { false }
  #endif
}
