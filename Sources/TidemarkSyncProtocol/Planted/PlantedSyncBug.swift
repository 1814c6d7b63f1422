internal import TidemarkEngine

/// Mistakes of replication that can be switched on, one at a time, to see that the simulator
/// notices them.
///
/// Only a build with `TIDEMARK_PLANTED=1` can make them: in others what asks for them is compiled
/// and left out.
package enum PlantedSyncBug: String, Sendable, CaseIterable {
  /// The server takes a batch whose number it has had.
  case markNotChecked
  /// The server appends a batch and its mark in two commits.
  case markApart
  /// An answer goes out before what it tells of is on the disk.
  case toldBeforeDurable
  /// A server judges changes without a look at what they were made upon.
  case baseIgnored
  /// The verdict on a change counts for an edit of its key that was made meanwhile.
  case ackDropsLaterEdit
  /// The cursor is kept before what it stands for.
  case cursorBeforeData
  /// A batch is sent without being written down.
  case formedNotKept
  /// A store whose mark at the peer is not its own goes on as if it was.
  case cloneNotNoticed
  /// Leases that ran out are renewed, and nothing is said of deletes that are gone.
  case leaseIgnored
  /// Deletes are not kept for those who have not seen them, who are not told so either.
  case deletesNotKept
  /// The resolver runs for a change that is under way.
  case resolvedInFlight
  /// A new name makes the batch under way forgotten.
  case batchLostByRename
  /// Entries that a restored server has lost are not sent again.
  case lostNotSentAgain
  /// Entries that came from others and that a restored server has lost are not brought back.
  case lostNotAdopted
  /// A change that the server refuses counts as done.
  case refusedForgotten

  /// A name goes on although a batch that was sent under it may yet arrive at a restored server.
  case lateBatchForgotten
  /// Entries that lay outside of the scope are not sent when the scope is widened.
  case outsideForgotten
  /// A server that was restored between two calls is taken for the same.
  case restoreNotNoticed
  /// The resolver is not asked about a change on which the server told of a conflict.
  case conflictForgotten
  /// A change that was made after one that lost is lost with it.
  case lossDropsLaterEdit
  /// A change that waits goes on waiting when another has taken its place.
  case olderWaitsForEver
  /// A store that meets a feed for the first time takes what it has under its name for its own.
  case markOfAnotherTaken
  /// An authorization that reaches other entries than before is taken for the same.
  case reachIgnored
  /// A superseded entry is left out although the reader does not hear of the later one.
  case supersededNeverTold
  /// The pin of a peer does not follow what was settled: all since then counts as pending.
  case pinNotMoved
  /// An entry is acknowledged although the content of its attachment has not come.
  case attachmentNotAwaited
  /// The content of an attachment is released when it has come, before its entry is acknowledged.
  case releasedEarly
  /// Content that waits for its change is found by whoever names its sender and its hash.
  case waitingContentShared
  /// An entry lends its attachment also to who does not reach it.
  case attachmentLent

  /// A handler looks only once whether a batch was formed by what this feed had told.
  case helloCheckedOnce
  /// A page goes on where the feed has lost its end since it was begun.
  case pagesMixEpochs
  /// Sums are given again of a feed that has lost its end since.
  case digestsOverEpochs
  /// A feed appends a batch without a look at the mark of its replica.
  case markNotCompared
  /// A feed appends a batch without a look at the revisions that it names.
  case revisionNotCompared
  /// A feed appends a batch that was judged by other policies.
  case policyNotCompared
  /// A feed appends a batch that was judged in another epoch.
  case epochNotCompared
  /// A feed that was restored begins no new epoch.
  case incarnationNotCompared
  /// A connection goes on by the incarnation that it has met first.
  case incarnationRemembered
  /// A restored feed begins its new epoch behind what it appends.
  case epochDrawnLate
  /// Offsets are given out before the commit, so that a later one can be seen before.
  case offsetsFromSequence
  /// Deletes are dropped before the feed says so.
  case deletesDroppedUnsaid

  /// Members of an atomic group are sent one by one.
  case groupSentInParts
  /// A change that is sent again after a conflict has the idempotency key of before.
  case conflictKeyKept
  /// The id in an answer is forgotten.
  case aliasForgotten
  /// An answer of a box on the way is taken for the back end's.
  case boxBelieved
  /// An idempotency key is that of a sequence, which a restored or copied store uses again.
  case sequenceAsKey
  /// Records that are gone when a token has expired stay.
  case expiryIgnored
  /// A failure on one change ends its batch.
  case faultEndsBatch
  /// Changes are sent together with what they come after.
  case orderIgnored
  /// A sign-out leaves the unsent changes of its user in the outbox.
  case outboxKept

  /// The mistakes that a store makes with a peer of requests.
  package static let ofRequests: [PlantedSyncBug] = [
    .groupSentInParts, .conflictKeyKept, .aliasForgotten, .boxBelieved, .sequenceAsKey,
    .expiryIgnored, .faultEndsBatch, .orderIgnored, .outboxKept,
  ]

  /// The mistakes of servers that share a database.
  package static let ofClusters: [PlantedSyncBug] = [
    .helloCheckedOnce, .pagesMixEpochs, .digestsOverEpochs, .markNotCompared,
    .revisionNotCompared, .policyNotCompared, .epochNotCompared, .incarnationNotCompared,
    .incarnationRemembered, .epochDrawnLate, .offsetsFromSequence, .deletesDroppedUnsaid,
  ]

  #if TIDEMARK_PLANTED
    private static let planted = Lock<PlantedSyncBug?>(nil)

    /// Takes a bug into the module, or all of them out again.
    package static func plant(_ bug: PlantedSyncBug?) { planted.withLock { $0 = bug } }

    /// Whether replication is to make this mistake.
    package static func isOn(_ bug: PlantedSyncBug) -> Bool { planted.withLock { $0 == bug } }
  #else
    /// Whether replication is to make this mistake: never, so that the compiler leaves it out.
    @inlinable package static func isOn(_ bug: PlantedSyncBug) -> Bool { false }
  #endif
}
