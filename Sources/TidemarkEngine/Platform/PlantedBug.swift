/// Mistakes that can be switched on, one at a time, to prove that the torture tests notice them.
///
/// Only a build with `TIDEMARK_PLANTED=1` can make them, such as that of `Tools/torture planted`.
/// In other builds `isOn` is false and the compiler leaves the mistakes out.
package enum PlantedBug: String, Sendable, CaseIterable {
  /// The active segment is never synced, yet writes are acknowledged as `durable`.
  case segmentNotSynced
  /// Writes count as durable at once.
  case durableTooSoon
  /// A sync that failed is tried again, and counts as done if that succeeds.
  case failedSyncRetried
  /// The log's directory is not synced after a segment was created in it.
  case logDirectoryNotSynced
  /// The first copy of MANIFEST is not synced before the second is written.
  case firstManifestNotSynced
  /// Only one copy of MANIFEST is written, over itself.
  case oneManifestCopy
  /// A compacted segment is not synced before MANIFEST lists it.
  case compactedSegmentNotSynced
  /// The directory is not synced before MANIFEST lists a compacted segment in it.
  case compactedNameNotSynced
  /// Compaction removes its input segments before MANIFEST lists the output in their place.
  case inputsRemovedFirst
  /// Values are returned whatever their checksum says.
  case blockChecksumIgnored
  /// Heads are decoded whatever their checksum says.
  case headsChecksumIgnored
  /// Locators are read whatever their checksum says.
  case locatorChecksumIgnored
  /// Compaction drops tombstones whose keys have older versions.
  case tombstoneDroppedEarly
  /// Compaction drops tombstones and keeps runs of the index that still have them.
  case outdatedRunKept
  /// Compaction merges versions of a key in any order.
  case mergedOutOfOrder
  /// Compaction leaves out the entries that it sorted in memory last.
  case windowForgotten
  /// Compaction drops versions that an open view needs.
  case viewsForgotten
  /// A run of the index covers entries that are not durable yet, and stays when a crash loses them.
  case runAheadOfLog
  /// Opening forgets sequences whose entries were compacted away, and gives them out again.
  case sequenceReused
  /// Recovery keeps what the last process may not have synced, without writing it again.
  case tailNotRewritten
  /// Recovery keeps the beginning of a batch that was never finished.
  case halfBatchKept
  /// Recovery takes damage to synced bytes for a write that a crash cut short.
  case damageTakenForTornTail
  /// The last entry of a segment is lost when the segment is sealed.
  case lastEntryLostAtSealing
  /// The cache answers with the value before the last write.
  case cacheNotInvalidated
  /// An eviction removes a value also if it is the user's own and not a cached one.
  case ownedEvicted
  /// A cached value is written as the user's own.
  case cachedAsOwned
  /// A read of a cached value counts as a validation by its source.
  case readsExtendValidity
  /// A source's answer is cached though its key was written or invalidated since the question.
  case overtakenAnswerKept
  /// A 304 response updates all stored fields except `Vary`.
  case varyNotRenewed
  /// Attachments of evicted entries stay until a compaction.
  case cacheSweepForgotten
  /// The switch to a new generation of a collection is two commits.
  case generationSwitchedHalf
  /// The index rows of an object are committed after it, in a commit of their own.
  case rowsInOwnCommit
  /// An object that is overwritten keeps the index rows of its old content.
  case formerRowsKept
  /// A program without a collection's indexes writes an object and does not mark it as unindexed.
  case unknownWriterUnmarked
  /// Unknown fields in elements of a list stay at their position, whichever element is there now.
  case unknownFieldsByPlace
  /// A query by an index leaves out objects that are in no index.
  case unindexedUntold
  /// An index is kept though other upcasts or defaults now decode the same bytes to other values.
  case formNotInIndex
  /// A projection's checkpoint names the end of the log instead of what the projection has read.
  case projectionAheadOfState
  /// Compaction drops entries that projections have yet to read.
  case projectionUnpinned
  /// Compaction drops an eviction that hides an older version which is still in the log.
  case evictionDroppedEarly
  /// Compaction drops a cached version, and newer versions still link to it.
  case cachedLinkDangles
  /// A key that is overwritten keeps its labels.
  case labelsNotUpdated
  /// A run of the index that lies over older runs leaves deletes out.
  case deleteForgottenOverRuns
  /// A run that lies over older runs does not say which of its keys have lost a label.
  case lostLabelForgotten
  /// An entry after a delete does not link to the delete, so the key's history ends there.
  case linkEndsAtDelete

  #if TIDEMARK_PLANTED
    private static let planted = Lock<PlantedBug?>(nil)

    /// Switches one bug on and all others off; nil switches all off.
    package static func plant(_ bug: PlantedBug?) { planted.withLock { $0 = bug } }

    /// Whether the engine is to make this mistake.
    package static func isOn(_ bug: PlantedBug) -> Bool { planted.withLock { $0 == bug } }
  #else
    /// False in this build, so that the compiler leaves the mistakes out.
    @inlinable package static func isOn(_ bug: PlantedBug) -> Bool { false }
  #endif
}
