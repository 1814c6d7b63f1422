internal import Tidemark
package import TidemarkEngine
internal import TidemarkSyncProtocol

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
  /// Keys of the parts of large values that the batch has, and that need not be kept any more.
  package var uploads: [[UInt8]] = []
  /// The revision of the policies that it was judged by.
  package var policies: UInt64

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
  package func head(of entry: Entry, at offset: UInt64, previous: UInt64) -> FeedHead {
    let change = request.changes[entry.change]
    let isPut = change.kind == .put
    return FeedHead(
      offset: offset, kind: change.kind, key: change.key, labels: labelSets[entry.change],
      valueLength: isPut ? change.content.value.count : 0,
      operation: OperationID(replica: request.replica, sequence: change.sequence),
      commitTime: change.commitTime, attributes: attributes(of: entry), previous: previous)
  }
}
