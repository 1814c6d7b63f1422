public import Tidemark

/// Uploads a part of a content before the push of the change that refers to it: of an attachment,
/// or of a value too large for a push (``SyncContent/blob``).
///
/// An interrupted upload resumes, also after a restart of either side. The content counts as
/// uploaded once it is complete, has the stated hash, and is durable.
public struct AttachRequest: Sendable, Hashable {
  /// The replica that sends it: only its changes can use the upload.
  public var replica: ReplicaID
  /// The key whose entry will refer to the attachment, or have the value.
  public var key: [UInt8]
  /// The hash and length of the content.
  public var attachment: AttachmentReference
  /// How many bytes of the content come before this part.
  public var offset: Int
  /// The part: a multiple of ``partBytes``, unless it is the last. Empty to ask how much is stored.
  public var bytes: [UInt8]

  /// Parts are multiples of this, but for the last: pieces of an attachment's file.
  public static let partBytes = 64 << 10

  /// Most bytes of one part.
  public static let mostBytes = 4 << 20

  /// A part of a content.
  public init(
    replica: ReplicaID, key: [UInt8], attachment: AttachmentReference, offset: Int, bytes: [UInt8]
  ) {
    self.replica = replica
    self.key = key
    self.attachment = attachment
    self.offset = offset
    self.bytes = bytes
  }
}

/// How much of a content the peer has stored.
public struct AttachAnswer: Sendable, Hashable {
  /// The stored bytes from the beginning; the next part begins there. It may be less than before.
  /// The content's length means that it is complete, has its hash, and is durable.
  public var received: Int
  /// Why the content is refused for good; nil where it is not.
  public var rejection: Rejection?
  /// The range of the feed now: an upload may take hours, and shows its sender when to pull.
  public var range: FeedRange

  /// An answer.
  public init(received: Int, rejection: Rejection? = nil, range: FeedRange) {
    self.received = received
    self.rejection = rejection
    self.range = range
  }
}

/// Asks for a part of the content of the attachment that a key's entry refers to now.
public struct ContentRequest: Sendable, Hashable {
  /// The replica that asks.
  public var replica: ReplicaID
  /// The key.
  public var key: [UInt8]
  /// The hash and length of the content.
  public var attachment: AttachmentReference
  /// How many bytes to leave out at the beginning.
  public var offset: Int
  /// How many bytes are wanted at most, at least one.
  public var limit: Int

  /// Asks for a part.
  public init(
    replica: ReplicaID, key: [UInt8], attachment: AttachmentReference, offset: Int, limit: Int
  ) {
    self.replica = replica
    self.key = key
    self.attachment = attachment
    self.offset = offset
    self.limit = limit
  }
}

/// A part of the content of an attachment.
public struct ContentAnswer: Sendable, Hashable {
  /// The part; empty only at the content's end. Nil where the key's entry is out of reach or refers
  /// to another attachment now, or the peer lacks the content.
  public var bytes: [UInt8]?

  /// A part.
  public init(bytes: [UInt8]?) { self.bytes = bytes }
}
