public import Tidemark
package import TidemarkEngine

/// Whether a change puts or deletes its key.
public enum ChangeKind: UInt8, Sendable, Hashable, CaseIterable {
  /// The change gives its key a value.
  case put = 1
  /// The change deletes its key.
  case delete = 2
}

/// The content that a change gives its key in a message: value, labels, attachment, validator hash
/// and maximum age.
public struct SyncContent: Sendable, Hashable {
  /// The bytes of the value; empty for a delete, and if ``blob`` refers to the value.
  public var value: [UInt8]
  /// The hash and length of a large value that is transferred separately; nil if ``value`` has the
  /// value. The peer replaces the reference by the value before a store receives the content.
  public var blob: AttachmentReference?
  /// The labels of the entry, in byte order and without duplicates.
  public var labels: [EntryLabel]
  /// The hash and length of the entry's attachment, whose content is transferred separately; nil
  /// for no attachment.
  public var attachment: AttachmentReference?
  /// The validator hash that the writer gave the value, such as an ETag; nil for none.
  public var hash: [UInt8]?
  /// For how long the value is valid after its time, in whole seconds, rounded up; nil if the
  /// writer gave no maximum age.
  public var maxAge: Duration? {
    get { maxAgeSeconds.map { .seconds($0) } }
    set { maxAgeSeconds = newValue.map { UInt32(clamping: $0.wholeSeconds) } }
  }
  /// The same in seconds.
  package var maxAgeSeconds: UInt32?

  /// Creates the content that a put gives a key; without arguments it is the content of a delete.
  /// - Parameters:
  ///   - value: the bytes of the value.
  ///   - labels: the labels of the entry.
  ///   - hash: the writer's validator hash; nil for none.
  ///   - maxAge: for how long the value is valid; nil for no limit.
  ///   - blob: the hash and length of a large value that is transferred separately; nil otherwise.
  ///   - attachment: the attachment of the entry; nil for none.
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

/// The version of its key that the writer of a change saw. If the key has another version at the
/// peer, the change is in conflict.
public enum ChangeBase: Sendable, Hashable {
  /// The key did not exist, as far as the writer knew.
  case absent
  /// The key had the version from the feed's entry at this position.
  case position(FeedPosition)
  /// The key had the version from an earlier operation of the same replica, with this sequence.
  case operation(sequence: UInt64)
}

/// One put or delete of a replica, in a batch that it pushes to a peer.
public struct PushedChange: Sendable, Hashable {
  /// The sequence of the change in the sender's log. Together with the replica it is the operation
  /// id.
  public var sequence: UInt64
  /// Whether the change puts or deletes its key.
  public var kind: ChangeKind
  /// The bytes of the key: 1 to 65,535.
  public var key: [UInt8]
  /// The content that the key gets; empty for a delete.
  public var content: SyncContent
  /// The version of the key that the writer saw. The peer finds conflicts by it.
  public var base: ChangeBase
  /// When the writer committed the change, by its hybrid logical clock: 48 bits of milliseconds
  /// since 1970 and 16 bits of count.
  public var commitTime: UInt64
  /// The time that the writer's program gave the entry; nil if it gave none.
  public var time: Timestamp?
  /// Changes with the same number apply together or not at all; 0 for a change alone.
  public var atomicGroup: UInt64

  /// Creates a change for a batch to push.
  /// - Parameters:
  ///   - sequence: the sequence in the sender's log.
  ///   - kind: whether the change puts or deletes its key.
  ///   - key: the bytes of the key: 1 to 65,535.
  ///   - content: the content that the key gets; empty for a delete.
  ///   - base: the version of the key that the writer saw.
  ///   - commitTime: the reading of the writer's hybrid logical clock.
  ///   - time: the time that the program gave the entry; nil for none.
  ///   - atomicGroup: changes with the same number apply together or not at all; 0 for none.
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

/// An entry of a peer's feed, as a replica receives it in a page.
public struct FeedEntry: Sendable, Hashable {
  /// What a feed's entry tells its reader: a put or delete of another replica, a change of the
  /// reader itself, or a key that left the scope.
  public enum Kind: UInt8, Sendable, Hashable, CaseIterable {
    /// Another replica has put the key.
    case put = 1
    /// Another replica has deleted the key.
    case delete = 2
    /// The reader made the change itself. The entry has no key and no content, since the reader has
    /// both.
    case own = 3
    /// The key's newest version is outside of the reader's scope, so that the reader no longer gets
    /// it.
    case left = 4
  }

  /// The position of the entry in the feed.
  public var position: FeedPosition
  /// Whether the entry is a put or delete of another replica, a change of the reader, or a key that
  /// left the scope.
  public var kind: Kind
  /// The id of the write: the replica that made it, and its sequence there.
  public var operation: OperationID
  /// The bytes of the key; empty for ``Kind/own``.
  public var key: [UInt8]
  /// The content that the entry gave its key.
  public var content: SyncContent
  /// When the writer committed the change, by its hybrid logical clock. Every feed keeps the time
  /// unchanged.
  public var commitTime: UInt64
  /// When the feed appended the entry, if the writer's clock was more than a minute ahead of the
  /// feed's; otherwise nil. Conflicts compare this time instead of the commit time.
  public var received: UInt64?
  /// The time that the writer's program gave the entry; nil if it gave none.
  public var time: Timestamp?
  /// The back end's id for the key, which the store saves in the same commit as the entry. Only
  /// peers in the same process use it; it is never sent over the network.
  public var alias: KeyAlias?

  /// How far a commit time may be ahead of the feed's clock and still count: a minute.
  package static let clockTolerance: UInt64 = 60_000 << 16

  /// Creates an entry of a feed.
  /// - Parameters:
  ///   - position: the position in the feed.
  ///   - kind: what the entry tells its reader.
  ///   - operation: the id of the write.
  ///   - key: the bytes of the key; empty for ``Kind/own``.
  ///   - content: the content that the key got.
  ///   - commitTime: the reading of the writer's hybrid logical clock.
  ///   - time: the time that the program gave the entry; nil for none.
  ///   - received: when the feed appended it, if the writer's clock was far ahead; nil otherwise.
  public init(
    position: FeedPosition, kind: Kind, operation: OperationID, key: [UInt8],
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
