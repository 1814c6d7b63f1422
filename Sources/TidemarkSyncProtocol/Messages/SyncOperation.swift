public import Tidemark
package import TidemarkEngine

/// The operation of a change.
public enum ChangeKind: UInt8, Sendable, Hashable, CaseIterable {
  /// Gives the key a value.
  case put = 1
  /// Deletes the key.
  case delete = 2
}

/// The content that an entry gives its key, as in messages.
public struct SyncContent: Sendable, Hashable {
  /// The value; empty for a delete, and where ``blob`` refers to it.
  public var value: [UInt8]
  /// Hash and length of a large value that is transferred separately. Peers replace it by the value
  /// before a store gets it.
  public var blob: AttachmentReference?
  /// In byte order, each once.
  public var labels: [EntryLabel]
  /// The attachment that the entry refers to; its content is transferred separately.
  public var attachment: AttachmentReference?
  /// The writer's validator hash.
  public var hash: [UInt8]?
  /// For how long the value is valid, in whole seconds, rounded up.
  public var maxAge: Duration? {
    get { maxAgeSeconds.map { .seconds($0) } }
    set { maxAgeSeconds = newValue.map { UInt32(clamping: $0.wholeSeconds) } }
  }
  /// The same in seconds.
  package var maxAgeSeconds: UInt32?

  /// The content that a put gives a key.
  public init(
    value: [UInt8] = [], labels: [EntryLabel] = [], hash: [UInt8]? = nil,
    maxAge: Duration? = nil, blob: AttachmentReference? = nil,
    attachment: AttachmentReference? = nil
  ) {
    self.init(
      value: value, labels: labels, hash: hash,
      maxAgeSeconds: maxAge.map { UInt32(clamping: $0.wholeSeconds) }, blob: blob,
      attachment: attachment)
  }

  package init(
    value: [UInt8], labels: [EntryLabel], hash: [UInt8]?, maxAgeSeconds: UInt32?,
    blob: AttachmentReference? = nil, attachment: AttachmentReference? = nil
  ) {
    self.attachment = attachment
    self.blob = blob
    self.value = value
    self.labels = labels
    self.hash = hash
    self.maxAgeSeconds = maxAgeSeconds
  }

  /// The content of a put in a store's log.
  package init(value: [UInt8], labels: [EntryLabel], _ attributes: EntryAttributes) {
    self.init(
      value: value, labels: labels, hash: attributes.hash, maxAgeSeconds: attributes.maxAge,
      attachment: attributes.attachment.map { AttachmentReference($0) })
  }
}

/// The version of its key that a change is based on: the one that its writer saw.
public enum ChangeBase: Sendable, Hashable {
  /// An absent key, as far as the writer knew.
  case absent
  /// The entry at a position of the feed.
  case position(Position)
  /// An earlier operation of the same replica.
  case operation(sequence: UInt64)
}

/// One change that is pushed to a peer.
public struct PushedChange: Sendable, Hashable {
  /// The sequence in the sender's log: with its replica, the operation id.
  public var sequence: UInt64
  /// The operation of the change.
  public var kind: ChangeKind
  /// The key: 1 to 65,535 bytes.
  public var key: [UInt8]
  /// The content that the key gets; empty for a delete.
  public var content: SyncContent
  /// The version that it is based on.
  public var base: ChangeBase
  /// When it was committed, hybrid logical clock: 48 bits of milliseconds since 1970, 16 of count.
  public var commitTime: UInt64
  /// The time that the program gave the entry, if any.
  public var time: Timestamp?
  /// Changes with the same number apply together or not at all; 0 for a change alone.
  public var atomicGroup: UInt64

  /// A change.
  public init(
    sequence: UInt64, kind: ChangeKind, key: [UInt8], content: SyncContent = SyncContent(),
    base: ChangeBase = .absent, commitTime: UInt64, time: Timestamp? = nil,
    atomicGroup: UInt64 = 0
  ) {
    self.sequence = sequence
    self.kind = kind
    self.key = key
    self.content = content
    self.base = base
    self.commitTime = commitTime
    self.time = time
    self.atomicGroup = atomicGroup
  }
}

/// An entry of a feed as a reader gets it.
public struct FeedEntry: Sendable, Hashable {
  /// What an entry means to its reader.
  public enum Kind: UInt8, Sendable, Hashable, CaseIterable {
    /// Another replica's put.
    case put = 1
    /// Another replica's delete.
    case delete = 2
    /// A change of the reader itself: without key and value, which it has.
    case own = 3
    /// The key has left the reader's scope.
    case left = 4
  }

  /// Its position in the feed.
  public var position: Position
  /// The kind of the entry.
  public var kind: Kind
  /// The operation id that its writer gave it.
  public var operation: OperationID
  /// The key; empty for ``Kind/own``.
  public var key: [UInt8]
  /// The content that the key got.
  public var content: SyncContent
  /// When the writer committed it, by its hybrid logical clock; kept unchanged by every feed.
  public var commitTime: UInt64
  /// When the feed appended it, if the writer's clock was more than a minute ahead of the feed's:
  /// then this time is compared in conflicts. Otherwise nil.
  public var received: UInt64?
  /// The time that the writer's program gave the entry, if any.
  public var time: Timestamp?
  /// The alias of the key, which the caller stores in the same commit. For peers in the same
  /// process; not sent.
  public var alias: Alias?

  /// How far a commit time may be ahead of the feed's clock and still count: a minute.
  package static let clockTolerance: UInt64 = 60_000 << 16

  /// An entry.
  public init(
    position: Position, kind: Kind, operation: OperationID, key: [UInt8],
    content: SyncContent = SyncContent(), commitTime: UInt64 = 0, time: Timestamp? = nil,
    received: UInt64? = nil
  ) {
    self.received = received
    self.position = position
    self.kind = kind
    self.operation = operation
    self.key = key
    self.content = content
    self.commitTime = commitTime
    self.time = time
  }
}

extension SyncContent {
  /// The labels' bytes in byte order, each once, even if a sender did not keep to that.
  package var labelSet: [[UInt8]] {
    var set: [[UInt8]] = []
    for label in labels.sorted() where set.last != label.bytes { set.append(label.bytes) }
    return set
  }
}
