internal import Tidemark
package import TidemarkEngine
package import TidemarkSyncProtocol

/// The questions that one look at a feed answers.
package struct FeedQuestion: Sendable {
  /// Whose mark and lease are wanted.
  package var replica: ReplicaID?
  /// The keys of which the states are wanted. A key may come more than once.
  package var keys: [[UInt8]]

  package init(of replica: ReplicaID? = nil, keys: [[UInt8]] = []) {
    self.replica = replica
    self.keys = keys
  }
}

/// The answers to a ``FeedQuestion``.
package struct FeedView: Sendable {
  /// As far as the feed can be seen, on the disk or not.
  package var range: FeedRange
  /// Everything up to here is on the disk.
  package var durable: UInt64
  /// Entries that others up to this offset supersede may be gone; 0 where everything is kept.
  package var historyFrom: UInt64
  /// The feed's time, in milliseconds since 1970: it does not depend on which server was asked.
  package var now: UInt64
  package var policies: PolicyTable
  package var mark = FeedMark()
  package var lease: FeedLease?
  /// By key of the question; nil for those of which nothing is known, and for what is too short or
  /// too long for a key.
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

  /// The epoch in which offsets are given out.
  package var epoch: UInt64 { range.epochs.last?.epoch ?? 0 }

  /// Whether everything that was read since an earlier view is as that has it: no end was lost, so
  /// that an offset may be another entry's, and no delete was dropped.
  func continues(_ earlier: FeedView) -> Bool {
    if PlantedSyncBug.isOn(.pagesMixEpochs) {
      return range.truncatedThrough == earlier.range.truncatedThrough
    }
    return range.epochs == earlier.range.epochs && range.head >= earlier.range.head
      && range.truncatedThrough == earlier.range.truncatedThrough
  }
}

/// How far a replica's batches have come, and where that stands.
package struct FeedMark: Sendable, Hashable {
  package var mark = ReplicaMark()
  package var position = Position.beginning

  /// Before the first batch.
  package init() {}

  /// Reads it from its record, which stands at a position.
  package init(_ record: [UInt8], at position: Position) throws(TidemarkError) {
    self.position = position
    do throws(FormatError) { mark = try MarkRecord.decode(record.rawSpan, at: position) } catch {
      throw TidemarkError(
        error.isNewer ? .formatTooNew : .damaged,
        "the mark of a replica in the feed cannot be read: \(error.reason)", cause: error)
    }
  }
}

/// The entries that are wanted of a feed.
package struct FeedQuery: Sendable {
  /// Where to begin, itself left out.
  package var after: UInt64
  /// Where to end.
  package var through: UInt64
  /// About how many entries to look at.
  package var limit: Int
  /// The entries of which it matters what labels their key had before.
  package var wantsFormer: @Sendable (FeedHead) -> Bool = { _ in false }
  /// The entries of which the state is wanted that a later one up to `through` gave their key.
  package var wantsLater: @Sendable (FeedHead) -> Bool = { _ in false }
}

/// An entry of a page.
package struct FeedRow: Sendable {
  package var head: FeedHead
  /// The labels that the key had before the entry, where they are wanted.
  package var former: FormerLabels?
  /// The state of the key, if a later entry gave it that.
  package var later: FeedState?

  package init(head: FeedHead) { self.head = head }
}

/// A page of entries; everything up to an offset was looked at for it.
package typealias FeedPage = (rows: [FeedRow], through: UInt64)

/// The state of a key in a feed.
package struct FeedState: Sendable, Hashable {
  /// The entry that gave it, with what a touch has renewed since.
  package var head: FeedHead
  /// The entry's.
  package var position: Position
  /// Changes with everything that happens to the key; never 0.
  package var revision: UInt64
  /// The writer's commit time, but not later than the feed's.
  package var commitTime: UInt64 { min(head.commitTime, head.received) }

  package init(head: FeedHead, position: Position, revision: UInt64) {
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
  /// In byte order; none of a delete.
  package var labels: [[UInt8]]
  package var valueLength: Int
  package var operation: OperationID
  /// The writer's, as it is: by it a change is known again, wherever it has been.
  package var commitTime: UInt64
  /// When the feed took it, by its own clock.
  package var received: UInt64
  package var attributes: EntryAttributes
  /// The key's entry before this one; 0 for none.
  package var previous: UInt64

  /// When the feed took it, for readers: nil where its writer's clock was as good as right.
  var receivedBeforeCommit: UInt64? {
    let isAhead = commitTime > received && commitTime - received > FeedEntry.clockTolerance
    return isAhead ? received : nil
  }

  /// About how many bytes it takes in an answer. Labels count: an entry may have 16 KiB of them.
  var answerBytes: Int {
    let attachment = attributes.attachment == nil ? 0 : 48
    return labels.reduce(key.count + valueLength + attachment) { $0 + $1.count }
  }
}

/// A batch with its verdicts, ready to be appended.
package struct JudgedBatch: Sendable {
  /// One entry to append.
  package struct Entry: Sendable {
    package enum Kind: Sendable, Hashable {
      /// The change applies, provided that the key still is at a revision, 0 for no value; nil
      /// where an earlier entry of the batch has changed it.
      case applies(upon: UInt64?)
      /// The change is kept beside what it lost to.
      case loses
    }

    /// Which of the batch's changes.
    package var change: Int
    package var kind: Kind
    /// The labels that its key had before.
    package var former = FormerLabels()
  }

  package var request: PushRequest
  /// By change, the labels that it gives its key, as ``FeedHead`` has them.
  package var labelSets: [[[UInt8]]]
  package var entries: [Entry] = []
  /// A verdict on what is about to be appended has its place in the batch.
  package var verdicts: [Verdict] = []

  /// Whether readers have something to pull once it was appended.
  package var hasNews: Bool { entries.contains { $0.kind != .loses } }

  /// The record that ends the batch; the mark is read from it once it is known where it stands.
  package var markRecord: [UInt8] {
    MarkRecord.encode(
      number: request.number, batchID: request.batchID, verdicts: verdicts, entries: entries.count)
  }

  /// The attributes of one of its entries in the feed.
  func attributes(of entry: Entry) -> EntryAttributes {
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

  /// One of its entries as it stands in the feed.
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
