public import Tidemark
package import TidemarkEngine

/// The operation of a change.
public enum ChangeKind: UInt8, Sendable, Hashable, CaseIterable {
  /// Gives it a value.
  case put = 1
  /// Takes it away.
  case delete = 2
}

/// The content of a key, now or then, as it travels.
public struct SyncContent: Sendable, Hashable {
  /// The value; empty for a delete, and where it travels apart.
  public var value: [UInt8]
  /// The value's name where it travels apart; a store never sees it so.
  public var blob: AttachmentReference?
  /// In byte order, each once.
  public var labels: [EntryLabel]
  /// The attachment that the entry names; its content travels by itself.
  public var attachment: AttachmentReference?
  /// The writer's validator hash.
  public var hash: [UInt8]?
  /// For how long the value counts as valid, in whole seconds, rounded up.
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

  /// The content that a put of a store's log gave its key.
  package init(value: [UInt8], labels: [EntryLabel], _ attributes: EntryAttributes) {
    self.init(
      value: value, labels: labels, hash: attributes.hash, maxAgeSeconds: attributes.maxAge,
      attachment: attributes.attachment.map { AttachmentReference($0) })
  }
}

/// The version that a change was made upon.
public enum ChangeBase: Sendable, Hashable {
  /// On an absent key, as far as the writer knew.
  case absent
  /// On what stands at a position of the feed.
  case position(Position)
  /// On an earlier operation of the same replica.
  case operation(sequence: UInt64)
}

/// One change on its way to a peer.
public struct PushedChange: Sendable, Hashable {
  /// The sequence in the sender's log: with its replica, the operation id.
  public var sequence: UInt64
  /// The operation of the change.
  public var kind: ChangeKind
  /// To which key: 1 to 65,535 bytes.
  public var key: [UInt8]
  /// The content that the key gets; nothing for a delete.
  public var content: SyncContent
  /// The version it was made upon.
  public var base: ChangeBase
  /// When it was committed, hybrid logical clock: 48 bits of milliseconds since 1970, 16 of count.
  public var commitTime: UInt64
  /// The caller's own time.
  public var time: Timestamp?
  /// Changes with the same number apply together or not at all; 0 for alone.
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

/// One change as a feed gives it to readers.
public struct FeedEntry: Sendable, Hashable {
  /// The kinds of a feed's entries to a reader.
  public enum Kind: UInt8, Sendable, Hashable, CaseIterable {
    /// Somebody's put.
    case put = 1
    /// Somebody's delete.
    case delete = 2
    /// An operation of the reader's own: key and value stay out, the reader has them.
    case own = 3
    /// The key has left the reader's scope.
    case left = 4
  }

  /// Where it stands.
  public var position: Position
  /// The kind of the entry.
  public var kind: Kind
  /// The operation of the replica that wrote it first.
  public var operation: OperationID
  /// The key; empty for one's own.
  public var key: [UInt8]
  /// The content that the key got.
  public var content: SyncContent
  /// When the writer committed it, hybrid logical clock: as told, by which it is known again.
  public var commitTime: UInt64
  /// When the feed took it, where the writer's clock was ahead of the feed's by more than a minute:
  /// then this is the time that counts. Else nil.
  public var received: UInt64?
  /// The writer's own time.
  public var time: Timestamp?
  /// The remote end's name for the key, which the caller saves with the entry. For peers in the
  /// same process: it does not travel.
  public var alias: Alias?

  /// How far a commit time may lie ahead of the feed's clock and still count: a minute.
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
  /// The labels' bytes in byte order, each once, whatever the sender made of it.
  package var labelSet: [[UInt8]] {
    var set: [[UInt8]] = []
    for label in labels.sorted() where set.last != label.bytes { set.append(label.bytes) }
    return set
  }
}
