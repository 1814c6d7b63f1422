internal import TidemarkEngine

/// Faults of replication that only tests switch on, one at a time, to prove that the simulator
/// detects them (mutation testing).
///
/// Only a build with `TIDEMARK_PLANTED=1` contains them: in others `isOn` is constantly false, and
/// the compiler removes them.
package enum PlantedSyncBug: String, Sendable, CaseIterable {
  /// The server appends a batch whose number it has already.
  case markNotChecked
  /// The server appends a batch and its mark in two commits.
  case markApart
  /// An answer is sent before its entries are durable.
  case toldBeforeDurable
  /// The server ignores the bases of changes.
  case baseIgnored
  /// The verdict on a change counts also for an edit of its key that was made meanwhile.
  case ackDropsLaterEdit
  /// The cursor is stored before the entries up to it.
  case cursorBeforeData
  /// A batch is sent before it is stored.
  case formedNotKept
  /// A copied store goes on although the peer's mark is of a batch of the other copy.
  case cloneNotNoticed
  /// Expired leases are renewed without a comparison, and dropped tombstones are not reported.
  case leaseIgnored
  /// Tombstones are dropped that live leases need, and readers are not told.
  case deletesNotKept
  /// The resolver runs for a change that is in flight.
  case resolvedInFlight
  /// A store that draws a new replica id forgets its batch in flight.
  case batchLostByRename
  /// Own changes that a restored server has lost are not sent again.
  case lostNotSentAgain
  /// Entries of others that a restored server has lost are not brought back.
  case lostNotAdopted
  /// A change that the server rejects counts as done.
  case refusedForgotten

  /// A batch sent before a server was restored may still be appended, under the old replica id.
  case lateBatchForgotten
  /// Changes outside of the scope are not sent once the scope is widened to them.
  case outsideForgotten
  /// A server that was restored between two calls is not noticed.
  case restoreNotNoticed
  /// The resolver does not run for a change with the verdict conflict.
  case conflictForgotten
  /// A change made after one that lost is dropped with it.
  case lossDropsLaterEdit
  /// A change that waits in the outbox stays there after a later one superseded it.
  case olderWaitsForEver
  /// A store that meets a feed for the first time treats a mark with its replica id as its own.
  case markOfAnotherTaken
  /// A change of what the authorization reaches is not noticed.
  case reachIgnored
  /// A page omits a superseded entry though the entry that supersedes it is not for this reader.
  case supersededNeverTold
  /// The pin of a peer does not advance with verdicts: all since then counts as pending.
  case pinNotMoved
  /// An entry is appended although the content of its attachment is not uploaded.
  case attachmentNotAwaited
  /// An attachment's content is released after its upload, before the verdict on its entry.
  case releasedEarly
  /// Uploads can be used by callers with another scope that know the replica id and the hash.
  case waitingContentShared
  /// A caller may fetch the attachment of an entry out of its reach.
  case attachmentLent

  /// A handler checks only at its first attempt that a batch fits the last hello's answer.
  case helloCheckedOnce
  /// A page mixes entries from before and after a feed lost its end.
  case pagesMixEpochs
  /// A digest is answered from before a feed lost its end.
  case digestsOverEpochs
  /// A feed appends a batch without comparing the mark of its replica.
  case markNotCompared
  /// A feed appends a batch without comparing the revisions of its keys.
  case revisionNotCompared
  /// A feed appends a batch that was judged by other policies.
  case policyNotCompared
  /// A feed appends a batch that was judged in another epoch.
  case epochNotCompared
  /// A feed that was restored begins no new epoch.
  case incarnationNotCompared
  /// A connection compares with the incarnation that it met first, not with that of the database.
  case incarnationRemembered
  /// A restored feed begins its new epoch after the first append instead of before.
  case epochDrawnLate
  /// Offsets are assigned before the commit, so that a later one can be visible first.
  case offsetsFromSequence
  /// Tombstones are dropped before the feed's range says so.
  case deletesDroppedUnsaid

  /// Members of an atomic group are sent one by one.
  case groupSentInParts
  /// A change that is sent again after a conflict reuses its idempotency key.
  case conflictKeyKept
  /// The alias in an answer is not stored.
  case aliasForgotten
  /// A proxy's answer counts as the back end's.
  case boxBelieved
  /// An idempotency key depends on the sequence only, which a restored or copied store uses again.
  case sequenceAsKey
  /// Records that are gone when a back end's cursor token has expired are not deleted here.
  case expiryIgnored
  /// A failure on one change ends its batch.
  case faultEndsBatch
  /// Changes are sent together with those that they must come after.
  case orderIgnored
  /// A sign-out leaves the unsent changes of its user in the outbox.
  case outboxKept

  /// The faults of a store that replicates with a `RequestPeer`.
  package static let ofRequests: [PlantedSyncBug] = [
    .groupSentInParts, .conflictKeyKept, .aliasForgotten, .boxBelieved, .sequenceAsKey,
    .expiryIgnored, .faultEndsBatch, .orderIgnored, .outboxKept,
  ]

  /// The faults of servers that share a database.
  package static let ofClusters: [PlantedSyncBug] = [
    .helloCheckedOnce, .pagesMixEpochs, .digestsOverEpochs, .markNotCompared,
    .revisionNotCompared, .policyNotCompared, .epochNotCompared, .incarnationNotCompared,
    .incarnationRemembered, .epochDrawnLate, .offsetsFromSequence, .deletesDroppedUnsaid,
  ]

  #if TIDEMARK_PLANTED
    private static let planted = Lock<PlantedSyncBug?>(nil)

    /// Switches a fault on, or all off.
    package static func plant(_ bug: PlantedSyncBug?) { planted.withLock { $0 = bug } }

    /// Whether replication has this fault now.
    package static func isOn(_ bug: PlantedSyncBug) -> Bool { planted.withLock { $0 == bug } }
  #else
    /// Whether replication has this fault: never in this build, so that the compiler removes it.
    @inlinable package static func isOn(_ bug: PlantedSyncBug) -> Bool { false }
  #endif
}
