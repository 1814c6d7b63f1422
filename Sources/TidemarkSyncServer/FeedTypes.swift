package import TidemarkEngine
internal import TidemarkSyncProtocol

/// Where a feed begins and ends.
package struct FeedBounds: Sendable, Hashable {
  /// As far as it can be seen, on the disk or not.
  package var range: FeedRange
  /// Everything up to here is on the disk.
  package var durable: UInt64
  /// Entries that others up to this offset supersede may be gone; 0 where everything is kept.
  package var historyFrom: UInt64

  package init(range: FeedRange, durable: UInt64, historyFrom: UInt64) {
    self.range = range
    self.durable = durable
    self.historyFrom = historyFrom
  }

  /// The range through an offset, or as far as it is on the disk if that is further.
  func range(through offset: UInt64) -> FeedRange {
    var part = range
    part.head = min(max(durable, offset), range.head)
    return part
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

/// The outcome of an attempt to append a batch.
package enum AppendOutcome: Sendable {
  case appended(FeedMark)
  /// It is not the batch's turn: the mark is another than that of the batch before.
  case markIs(FeedMark)
  /// A key, or a policy, is not any more what the batch was judged by.
  case conflict
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

/// A page of entries.
package struct FeedPage: Sendable {
  package struct Row: Sendable {
    package var head: FeedHead
    /// The labels that the key had before the entry, where they are wanted.
    package var former: FormerLabels?
    /// The state of the key, if a later entry gave it that.
    package var later: FeedState?

    package init(head: FeedHead) { self.head = head }
  }

  package var rows: [Row]
  /// Everything up to here was looked at.
  package var through: UInt64

  package init(rows: [Row], through: UInt64) {
    self.rows = rows
    self.through = through
  }
}

/// The state of a key in a feed.
package struct FeedState: Sendable, Hashable {
  /// The entry that gave it, with what a touch has renewed since.
  package var head: FeedHead
  /// The entry's.
  package var position: Position
  /// Changes with everything that happens to the key; never 0.
  package var revision: UInt64
  /// The writer's commit time, but not later than the feed's.
  package var commitTime: UInt64

  package init(head: FeedHead, position: Position, revision: UInt64, commitTime: UInt64) {
    self.head = head
    self.position = position
    self.revision = revision
    self.commitTime = commitTime
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
  package var attributes: EntryAttributes
  /// The key's entry before this one; 0 for none.
  package var previous: UInt64

  /// About how many bytes it takes in an answer. Labels count: an entry may have 16 KiB of them.
  var answerBytes: Int {
    let attachment = attributes.attachment == nil ? 0 : 48
    return labels.reduce(key.count + valueLength + attachment) { $0 + $1.count }
  }
}

/// A key in a scan.
package typealias FeedKey = (
  key: [UInt8], labels: [[UInt8]], attachment: AttachmentID?, offset: UInt64
)

/// A record of the handler's.
package typealias FeedRecord = (value: [UInt8], position: Position)
