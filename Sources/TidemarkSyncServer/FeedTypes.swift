internal import Tidemark
package import TidemarkEngine
package import TidemarkSyncProtocol

/// What a caller of ``Feed/look(_:)`` wants to know.
package struct FeedQuestion: Sendable {
  /// The replica whose mark and lease are wanted.
  package var replica: ReplicaID?
  /// The keys of which the states are wanted. A key may come more than once.
  package var keys: [[UInt8]]

  package init(of replica: ReplicaID? = nil, keys: [[UInt8]] = []) {
    self.replica = replica
    self.keys = keys
  }
}

/// A consistent snapshot of a feed, as far as a ``FeedQuestion`` asks.
package struct FeedView: Sendable {
  /// All entries that can be read, durable or not.
  package var range: FeedRange
  /// Everything up to this offset is durable.
  package var durable: UInt64
  /// An entry may be gone if one up to this offset supersedes it; 0 where all history is kept.
  package var historyFrom: UInt64
  /// The feed's time, in milliseconds since 1970: it does not depend on which server was asked.
  package var now: UInt64
  package var policies: PolicyTable
  /// Differs after a failover or a restore. Epochs do not tell: a feed that loses its end, and gets
  /// it back from a copy, has the same ones again.
  package var incarnation: UInt64 = 0
  /// How many bytes of entries puts may add, as ``FeedHead/storedBytes`` counts them; nil for any.
  package var room: Int?
  /// Whether nothing may be appended now, as an operator has said.
  package var isReadOnly = false
  package var mark = FeedMark()
  package var lease: FeedLease?
  /// By key of the question; nil for keys without entry, and for what is too short or too long for
  /// a key.
  package var states: [FeedState?] = []

  package init(
    range: FeedRange, durable: UInt64, historyFrom: UInt64, now: UInt64, policies: PolicyTable
  ) {
    self.range = range
    self.durable = durable
    self.historyFrom = historyFrom
    self.now = now
    self.policies = policies
  }

  /// The epoch in which offsets are assigned.
  package var epoch: UInt64 { range.epochs.last?.epoch ?? 0 }

  /// Whether what was read between an earlier view and this one is consistent with both: the feed
  /// has not lost its end (offsets could be assigned again) and has dropped no tombstone.
  func continues(_ earlier: FeedView) -> Bool {
    if PlantedSyncBug.isOn(.pagesMixEpochs) {  // a fault that only tests switch on
      return range.truncatedThrough == earlier.range.truncatedThrough
    }
    return incarnation == earlier.incarnation && range.epochs == earlier.range.epochs
      && range.head >= earlier.range.head
      && range.truncatedThrough == earlier.range.truncatedThrough
  }
}

/// A replica's mark (number, id and verdicts of its last batch), and the position of its record.
package struct FeedMark: Sendable, Hashable {
  package var mark = ReplicaMark()
  package var position = FeedPosition.beginning

  /// Before the first batch.
  package init() {}

  /// Decodes the record at a position.
  package init(_ record: [UInt8], at position: FeedPosition) throws(TidemarkError) {
    self.position = position
    do throws(FormatError) { mark = try MarkRecord.decode(record.rawSpan, at: position) } catch {
      throw TidemarkError(
        error.isNewer ? .formatTooNew : .damaged,
        "the mark of a replica in the feed cannot be read: \(error.reason)", cause: error)
    }
  }
}

/// Which entries ``Feed/read(_:)`` reads, and what about each.
package struct FeedQuery: Sendable {
  /// The offset to begin after.
  package var after: UInt64
  /// The last offset to read.
  package var through: UInt64
  /// About how many entries to look at.
  package var limit: Int
  /// For which entries ``FeedRow/former`` is wanted.
  package var wantsFormer: @Sendable (FeedHead) -> Bool = { _ in false }
  /// For which entries ``FeedRow/later`` is wanted.
  package var wantsLater: @Sendable (FeedHead) -> Bool = { _ in false }
  /// Most bytes of values that a feed in a remote database should put into ``FeedPage/values``, to
  /// save the round trip of ``Feed/values(at:)``.
  package var valueBytes = 0
  /// The replica for whose mark and lease a feed in a remote database should fill
  /// ``FeedPage/end``, to save the round trip of ``Feed/look(_:)``.
  package var replica: ReplicaID?

  package init(after: UInt64, through: UInt64, limit: Int) {
    (self.after, self.through, self.limit) = (after, through, limit)
  }
}

/// An entry of a page.
package struct FeedRow: Sendable {
  package var head: FeedHead
  /// The labels that the key had before, where wanted: they tell whose scope the key has left.
  package var former: FormerLabels?
  /// The key's last entry, where it is wanted, comes after this one, and is not after `through`.
  package var later: FeedHead?

  package init(head: FeedHead) { self.head = head }
}

/// A page of entries.
package struct FeedPage: Sendable {
  package var rows: [FeedRow] = []
  /// The offset up to which the feed was read for it.
  package var through: UInt64
  /// Values of the first rows, by offset, as far as the feed has read them along.
  package var values: [UInt64: [UInt8]] = [:]
  /// What the replica of the query would see after the page was read, if the feed has looked along.
  package var end: FeedView?

  package init(rows: [FeedRow] = [], through: UInt64) {
    self.rows = rows
    self.through = through
  }
}

/// The state of a key in a feed.
package struct FeedState: Sendable, Hashable {
  /// The entry that wrote it, with the attributes that later touches have renewed.
  package var head: FeedHead
  /// The entry's.
  package var position: FeedPosition
  /// Changes with every write and touch of the key, for optimistic checks; never 0.
  package var revision: UInt64
  /// The fingerprint of key, value, labels and attachment; nil where the feed stores none. A push
  /// of other content is told from the stored one by it, without reading the stored value.
  package var fingerprint: ContentFingerprint?
  /// What last-writer-wins compares: not after `received`, as a clock that is ahead must not win.
  package var commitTime: UInt64 { min(head.commitTime, head.received) }

  package init(head: FeedHead, position: FeedPosition, revision: UInt64) {
    self.head = head
    self.position = position
    self.revision = revision
  }

  package var isDeleted: Bool { head.kind == .delete }
}

/// A put or a delete of a feed, without its value.
package struct FeedHead: Sendable, Hashable {
  package var offset: UInt64
  package var kind: ChangeKind
  package var key: [UInt8]
  /// In byte order; empty for a delete.
  package var labels: [[UInt8]]
  package var valueLength: Int
  package var operation: OperationID
  /// The writer's, unchanged: by it a client recognises a change that another replica brings back.
  package var commitTime: UInt64
  /// When it was appended, by the feed's clock.
  package var received: UInt64
  package var attributes: EntryAttributes
  /// The offset of the key's entry before this one; 0 for none.
  package var previous: UInt64

  package init(
    offset: UInt64, kind: ChangeKind, key: [UInt8], labels: [[UInt8]], valueLength: Int,
    operation: OperationID, commitTime: UInt64, received: UInt64, attributes: EntryAttributes,
    previous: UInt64
  ) {
    (self.offset, self.kind, self.key, self.labels) = (offset, kind, key, labels)
    (self.valueLength, self.operation) = (valueLength, operation)
    (self.commitTime, self.received) = (commitTime, received)
    (self.attributes, self.previous) = (attributes, previous)
  }

  /// `received` where the commit time is far ahead of it: readers then compare this one.
  var receivedBeforeCommit: UInt64? {
    let isAhead = commitTime > received && commitTime - received > FeedEntry.clockTolerance
    return isAhead ? received : nil
  }

  /// About how many bytes it takes in a table, with its attachment.
  package var storedBytes: Int {
    let attachment = Int(clamping: attributes.attachment?.length ?? 0)
    return labels.reduce(128 + key.count + valueLength + attachment) { $0 + $1.count + 1 }
  }

  /// About how many bytes it needs in an answer. Labels count: an entry may have 16 KiB of them.
  var answerBytes: Int {
    let attachment = attributes.attachment == nil ? 0 : 48
    return labels.reduce(key.count + valueLength + attachment) { $0 + $1.count }
  }
}

/// A batch with its verdicts, ready to be appended.
package struct DecidedBatch: Sendable {
  /// One entry to append.
  package struct Entry: Sendable {
    package enum Kind: Sendable, Hashable {
      /// The change applies, provided that the key still has this revision, 0 for no value; nil
      /// (no condition) where an earlier entry of the batch has changed the key.
      case applies(upon: UInt64?)
      /// The change lost by policy, and is kept as history without changing its key.
      case loses
    }

    /// The index of its change in the batch.
    package var change: Int
    package var kind: Kind
    /// The labels that its key had before.
    package var former = FormerLabels()
  }

  package var request: PushRequest
  /// By change, the labels that it gives its key, as ``FeedHead`` has them.
  package var labelSets: [[[UInt8]]]
  package var entries: [Entry] = []
  /// By change. A verdict on an entry of this batch has a planned position, see `MarkRecord`.
  package var verdicts: [PushVerdict] = []

  /// Whether readers have something to pull once it is appended.
  package var hasNews: Bool { entries.contains { $0.kind != .loses } }

  /// The record that ends the batch; the mark is decoded from it once its position is known.
  package func markRecord() throws(TidemarkError) -> [UInt8] {
    try MarkRecord.encode(
      number: request.number, batchID: request.batchID, verdicts: verdicts, entries: entries.count)
  }

  /// The attributes of one of its entries in the feed.
  package func attributes(of entry: Entry) -> EntryAttributes {
    let change = request.changes[entry.change]
    var attributes = EntryAttributes()
    attributes.origin = EntryAttributes.Origin(
      replica: request.replica.bytes, sequence: change.sequence)
    attributes.writerTime = change.commitTime
    attributes.time = change.time
    if case .applies = entry.kind { attributes.former = entry.former }
    if change.kind == .put {
      attributes.hash = change.content.hash
      attributes.maxAge = change.content.maxAgeSeconds
      if entry.kind != .loses { attributes.attachment = change.content.attachment?.engineID }
    }
    return attributes
  }

  /// The fingerprint of what a change gives its key; that of nothing for a delete.
  package func fingerprint(of index: Int) -> ContentFingerprint {
    let change = request.changes[index]
    guard change.kind == .put else { return ContentFingerprint(bits: 0) }
    let (key, value) = (change.key, change.content.value)
    return ContentFingerprint(
      key: key.rawSpan, value: value.rawSpan, labels: labelSets[index],
      attachment: change.content.attachment?.engineID)
  }

  /// One of its entries as a feed has it at an offset.
  package func head(
    of entry: Entry, at offset: UInt64, previous: UInt64, received: UInt64
  ) -> FeedHead {
    let change = request.changes[entry.change]
    let isPut = change.kind == .put
    return FeedHead(
      offset: offset, kind: change.kind, key: change.key, labels: labelSets[entry.change],
      valueLength: isPut ? change.content.value.count : 0,
      operation: OperationID(replica: request.replica, sequence: change.sequence),
      commitTime: change.commitTime, received: received, attributes: attributes(of: entry),
      previous: previous)
  }
}
