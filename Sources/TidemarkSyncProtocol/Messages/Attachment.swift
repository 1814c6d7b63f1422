public import Tidemark

/// Uploads a part of a content before the push of the change that refers to it: of an attachment,
/// or of a value too large for a push (``SyncContent/blob``).
///
/// An interrupted upload resumes, also after a restart of either side. The content counts as
/// uploaded once it is complete, has the stated hash, and is durable.
public struct AttachRequest: Sendable, Hashable {
  /// The replica that uploads. Only changes of this replica can refer to the uploaded content.
  public var replica: ReplicaID
  /// The key whose entry will refer to the attachment, or will have the large value.
  public var key: [UInt8]
  /// The SHA-256 hash and the length of the whole content.
  public var attachment: AttachmentReference
  /// The offset in the content, in bytes, at which this part begins.
  public var offset: Int
  /// The bytes of this part. Their number is a multiple of ``partBytes``, unless the part is the
  /// last one. An empty part asks how much the peer has stored.
  public var bytes: [UInt8]

  /// The unit of a part: 64 KiB. Each part except the last is a multiple of it.
  public static let partBytes = 64 << 10

  /// The most bytes of one part: 4 MiB.
  public static let mostBytes = 4 << 20

  /// Creates a request to upload one part of a content.
  /// - Parameters:
  ///   - replica: the replica that uploads.
  ///   - key: the key whose entry will refer to the content.
  ///   - attachment: the hash and length of the whole content.
  ///   - offset: where the part begins in the content, in bytes.
  ///   - bytes: the part; empty to ask how much the peer has stored.
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

/// The answer to an ``AttachRequest``: how much of the content the peer has stored.
public struct AttachAnswer: Sendable, Hashable {
  /// How many bytes the peer has stored from the beginning; the next part begins there. The number
  /// may be less than in an earlier answer. If it equals the content's length, the content is
  /// complete, has its hash and is durable.
  public var received: Int
  /// Why the peer refuses the content for good; nil if it accepts the content.
  public var rejection: SyncRejection?
  /// The range of the feed at the time of the answer. An upload may take hours, and the range shows
  /// the uploader when to pull.
  public var range: FeedRange

  /// Creates an answer to an upload.
  /// - Parameters:
  ///   - received: how many bytes the peer has stored from the beginning.
  ///   - rejection: why the content is refused for good; nil if it is accepted.
  ///   - range: the range of the feed now.
  public init(received: Int, rejection: SyncRejection? = nil, range: FeedRange) {
    self.received = received
    self.rejection = rejection
    self.range = range
  }
}

/// Asks for a part of a content: of the attachment that a key's entry refers to now, or of a large
/// value (``SyncContent/blob``) of an entry in the feed.
public struct ContentRequest: Sendable, Hashable {
  /// The replica that downloads the content.
  public var replica: ReplicaID
  /// The key whose entry refers to the content.
  public var key: [UInt8]
  /// The hash and length of the whole content.
  public var attachment: AttachmentReference
  /// The offset in the content, in bytes, at which the wanted part begins.
  public var offset: Int
  /// The most bytes that the answer may have; at least one.
  public var limit: Int
  /// The position of the entry that has the large value. For an attachment it is
  /// ``FeedPosition/beginning``.
  public var position: FeedPosition

  /// Creates a request to download one part of a content.
  /// - Parameters:
  ///   - replica: the replica that downloads.
  ///   - key: the key whose entry refers to the content.
  ///   - attachment: the hash and length of the whole content.
  ///   - offset: where the part begins in the content, in bytes.
  ///   - limit: the most bytes of the answer.
  ///   - position: the entry with the large value; the beginning for an attachment.
  public init(
    replica: ReplicaID, key: [UInt8], attachment: AttachmentReference, offset: Int, limit: Int,
    position: FeedPosition = .beginning
  ) {
    self.replica = replica
    self.key = key
    self.attachment = attachment
    self.offset = offset
    self.limit = limit
    self.position = position
  }
}

/// The answer to a ``ContentRequest``: one part of a content.
public struct ContentAnswer: Sendable, Hashable {
  /// The bytes of the part; empty only at the content's end. Nil if the caller may not read the
  /// key's entry, the entry now refers to other content, or the peer lacks the content.
  public var bytes: [UInt8]?

  /// Creates an answer with a part of a content.
  /// - Parameter bytes: the part; nil if the peer cannot give it.
  public init(bytes: [UInt8]?) { self.bytes = bytes }
}
