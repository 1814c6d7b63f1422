internal import TidemarkEngine
internal import TidemarkSyncProtocol

/// The progress that a store has made with one peer. It is kept in records of the store's log,
/// written in one batch with the entries that they speak of.
@dynamicMemberLookup
package struct PeerProgress: Sendable, Hashable {
  /// The part that seldom changes: it stands in the basis, and in no step.
  package struct Head: Sendable, Hashable {
    /// The feed that positions speak of; nil before the first hello.
    package var feed: ReplicaID?
    /// The last epochs of the feed, as far as it is known: of one that was restored from a backup
    /// they tell what it still has, also where it was opened again since the backup.
    var epochs: [FeedEpoch] = []
    /// The name of this store under which batches are counted.
    var name = ReplicaID.none
    /// The seed of the ids of the batches that were formed last.
    var seed: UInt64 = 0
    /// Stands for the scope that the cursor speaks of.
    package var scope: UInt64 = 0
    /// Stands for how far the authorization reached then; 0 for everything, or where it is not told.
    package var reach: UInt64 = 0
  }

  package var head = Head()
  /// Everything up to here was taken from the feed.
  package var cursor = Position.beginning
  /// The feed's end when this was written: no position that is known lies behind it. A feed that
  /// does not list it any more was restored from a backup.
  package var furthest = Position.beginning
  /// The bytes that the peer wants to have kept with it.
  package var resumption: [UInt8] = []
  /// The last batch of which the verdicts are known.
  package var number: UInt64 = 0
  package var batchID = BatchID.none
  package var outbox = Outbox()
  /// The work that has to be done first to put things right; nil when nothing has.
  package var resync: Resync?
  /// Others may know own changes up to here although the feed has them no more, or has them under a
  /// former name: it was restored from a backup or made anew, or this store has taken another name.
  /// 0 as long as none of that has happened.
  package var heardThrough: UInt64 = 0
  /// The feed may hold own changes up to here under a former name of this store, by a copy of it
  /// or by what it was before it was restored. 0 as long as it bears its first name.
  package var renamedThrough: UInt64 = 0
  /// Up to here the feed was compared by digest after it was restored, and is read once more for
  /// own operations: what a key without any version here had in it was deleted there.
  package var comparedThrough = Position.beginning

  /// A feed that was opened more often since a backup is read from its beginning.
  static let mostEpochs = 64

  package subscript<Value>(dynamicMember path: WritableKeyPath<Head, Value>) -> Value {
    get { head[keyPath: path] }
    set { head[keyPath: path] = newValue }
  }

  /// The feed as it was known when this was written.
  var knownRange: FeedRange { FeedRange(epochs: head.epochs, head: furthest.offset) }

  /// Whether a restored feed is read once more, of which this store may have forgotten what it has
  /// sent itself: deletes, and what others have taken the place of.
  var readsAgain: Bool { cursor.offset < comparedThrough.offset }

  /// Batches are counted on from the one with this number.
  mutating func count(_ number: UInt64, _ id: BatchID) { (self.number, batchID) = (number, id) }

  mutating func note(_ range: FeedRange) {
    furthest = range.headPosition
    // An epoch belongs to one history only.
    guard head.epochs.last != range.epochs.last else { return }
    head.epochs = Array(range.epochs.suffix(Self.mostEpochs))
  }

  /// The last own change of which the peer may have heard. It is never none, so that a feed that
  /// was restored is known for one, also where nothing was ever written.
  var lastSent: UInt64 { max(1, heardThrough, outbox.frontier) }
}

/// The work that puts things right with a peer before anything else goes on; a part of its
/// progress.
///
/// One comparison by digest serves all cases, which are in `HowReplicationWorks.md`, "The resync".
/// They differ in whether entries that the feed has lost are taken up first (`adopts`): not where a
/// lease has expired or a cursor was lost. And they differ in where the feed is read on afterwards:
/// a new feed from its beginning, a restored one from the last common position, and others from the
/// compared position, unless the cursor stays for own operations (`keepsCursor`).
package struct Resync: Sendable, Hashable {
  /// The decision about keys that the feed has lost in great number.
  package enum Purge: UInt8, Sendable, Hashable {
    /// Up to a bound they go here, too; above it the user decides.
    case bounded = 0
    /// The user must decide.
    case undecided = 1
    /// The user wants them to go.
    case allowed = 2
    /// The user wants them back in the feed.
    case refused = 3
  }

  /// Whether entries are to be sought first that came from the feed and stand in it no more.
  package var adopts = false
  /// Whether everything is to be compared by digest.
  package var compares = false
  /// Entries of the feed up to here were taken from it before.
  package var seenThrough: UInt64 = 0
  /// Whether the feed is read from where the cursor stands all the same, for own operations that
  /// it may have again.
  package var keepsCursor = false
  /// Whether keys that the peer tells nothing of go here without a question: the authorization has
  /// changed, so that they may lie outside of it. They count as out of scope, not as deleted.
  package private(set) var evicts = false
  package var purge = Purge.bounded
  /// How many keys there are that the user must decide on.
  package var lostKeys: UInt64 = 0

  /// Lets keys go that the peer tells nothing of, also those that the user was asked about.
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
