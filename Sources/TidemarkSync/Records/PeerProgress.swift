internal import TidemarkEngine
internal import TidemarkSyncProtocol

/// A store's checkpoint for one peer. It is saved in records of the store's log, in one batch with
/// the entries that it describes.
@dynamicMemberLookup
package struct PeerProgress: Sendable, Hashable {
  /// The fields that seldom change: they are in the basis, and in no step.
  package struct Head: Sendable, Hashable {
    /// The id of the feed whose positions these are; nil before the first hello.
    package var feed: ReplicaID?
    /// The feed's last epochs up to `furthest`. A restored feed lists its own: the common ones show
    /// how much it still has, also if it was reopened since the backup.
    var epochs: [FeedEpoch] = []
    /// This store's replica id, for which the batches are numbered.
    var name = ReplicaID.none
    /// The seed of the latest batches' ids.
    var seed: UInt64 = 0
    /// Fingerprint of the scope for which the cursor is valid.
    package var scope: UInt64 = 0
    /// Fingerprint of the entries that the authorization covered; 0 for all, or if not given.
    package var reach: UInt64 = 0
  }

  package var head = Head()
  /// Everything in the feed up to here was pulled.
  package var cursor = FeedPosition.beginning
  /// The feed's end when this was saved: no known position is later. A feed without this position
  /// was restored from a backup.
  package var furthest = FeedPosition.beginning
  /// Bytes of the peer that are returned to it with the cursor.
  package var resumption: [UInt8] = []
  /// The number and id of the last batch whose verdicts are known.
  package var number: UInt64 = 0
  package var batchID = BatchID.none
  package var outbox = Outbox()
  /// The resync that has to end before anything else; nil if none is due.
  package var resync: Resync?
  /// Own changes up to here may be known to other replicas although the feed lacks them (restored
  /// or recreated) or has them under a previous replica id of this store. 0 if neither has
  /// happened.
  package var possiblyKnownThrough: UInt64 = 0
  /// The feed may have own changes up to here under a previous replica id, sent by a copy of this
  /// store or before it was restored. 0 while it has its first id.
  package var renamedThrough: UInt64 = 0
  /// A restored feed was compared by digest up to here, and is pulled again for own changes. For a
  /// key unknown here, entries up to here are obsolete: the comparison found it absent.
  package var comparedThrough = FeedPosition.beginning

  /// The most epochs saved: a feed reopened more often since its backup is pulled from the
  /// beginning.
  static let mostEpochs = 64

  package subscript<Value>(dynamicMember path: WritableKeyPath<Head, Value>) -> Value {
    get { head[keyPath: path] }
    set { head[keyPath: path] = newValue }
  }

  /// The feed's range when this was saved.
  var knownRange: FeedRange { FeedRange(epochs: head.epochs, head: furthest.offset) }

  /// Whether a restored feed is pulled again: it may have own changes whose entries compaction has
  /// dropped here, such as deletes.
  var isRereading: Bool { cursor.offset < comparedThrough.offset }

  /// Numbers the next batch after this one.
  mutating func count(_ number: UInt64, _ id: BatchID) { (self.number, batchID) = (number, id) }

  mutating func note(_ range: FeedRange) {
    furthest = range.headPosition
    // Epochs are random, so with the same last one the lists are the same.
    guard head.epochs.last != range.epochs.last else { return }
    head.epochs = Array(range.epochs.suffix(Self.mostEpochs))
  }

  /// The last own change that the peer may have. At least 1, so that `possiblyKnownThrough` is
  /// never 0 after a restore, even if nothing was ever written.
  var lastSent: UInt64 { max(1, possiblyKnownThrough, outbox.frontier) }
}

/// A resync: work that makes store and feed agree again, before anything is pushed or pulled. It is
/// a part of the progress, so that a crash does not end it.
///
/// One comparison by digest serves all cases; see `HowReplicationWorks.md`, "The resync". They
/// differ in whether entries that the feed has lost are adopted first (`adopts`): not after an
/// expired lease or a lost cursor. And they differ in where pulling continues: in a new feed from
/// its beginning, in a restored one from the last common position, else from the compared position,
/// unless own changes have to be found from the cursor on (`keepsCursor`).
package struct Resync: Sendable, Hashable {
  /// The decision about many keys that the feed does not have any more.
  package enum Purge: UInt8, Sendable, Hashable {
    /// Up to a limit they are deleted here; above it the user decides.
    case bounded = 0
    /// The user must decide.
    case undecided = 1
    /// The user wants them deleted here.
    case allowed = 2
    /// The user wants them back in the feed.
    case refused = 3
  }

  /// Whether first all pulled entries that the feed lost are adopted: written again as own changes.
  package var adopts = false
  /// Whether everything is to be compared by digest.
  package var compares = false
  /// Entries of the feed up to this offset were pulled before.
  package var seenThrough: UInt64 = 0
  /// Whether pulling continues from the present cursor, for own changes that the feed may have
  /// again.
  package var keepsCursor = false
  /// Whether keys absent at the peer are removed without a question: the authorization has changed
  /// and may not cover them. They are evicted, as out of scope, not deleted.
  package private(set) var evicts = false
  package var purge = Purge.bounded
  /// The number of keys that the user must decide on.
  package var lostKeys: UInt64 = 0

  /// Has keys absent at the peer evicted, also those that the user was asked about.
  mutating func evict() {
    evicts = true
    purge = .bounded
    lostKeys = 0
  }

  mutating func code(_ record: inout FrameCursor) throws(FormatError) {
    try record.flags(15)
    record.flag(1, &adopts)
    record.flag(2, &compares)
    record.flag(4, &keepsCursor)
    record.flag(8, &evicts)
    var decision = purge.rawValue
    try record.u8(&decision)
    guard let purge = Purge(rawValue: decision) else {
      throw FormatError("unknown decision on lost keys")
    }
    self.purge = purge
    try record.varint(&seenThrough)
    try record.varint(&lostKeys)
  }
}
