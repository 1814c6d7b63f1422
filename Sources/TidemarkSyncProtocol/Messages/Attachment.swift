public import Tidemark

/// A part of a content on its way to a peer, before the change that names it: an attachment's, or a
/// value that is too large to travel with its change (``SyncContent/blob``).
///
/// An upload that was cut off goes on where it was, whatever ended in between. The content counts
/// as there once all of it has come, has the hash that it is named by, and is on the disk.
public struct AttachRequest: Sendable, Hashable {
  /// The replica that sends it: parts are kept for its changes only.
  public var replica: ReplicaID
  /// The key whose entry is to name the attachment, or to have the value.
  public var key: [UInt8]
  /// Which content.
  public var attachment: AttachmentReference
  /// How many bytes of the content come before this part.
  public var offset: Int
  /// The part: a multiple of ``partBytes``, unless it is the last. None asks how much is there.
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

/// How much of a content is there.
public struct AttachAnswer: Sendable, Hashable {
  /// So many bytes from the beginning; the next part begins there. It may be less than it was. All
  /// of them means that the content is whole, compared with its hash, and on the disk.
  public var received: Int
  /// Why the content will never be taken; nil where it will.
  public var rejection: Rejection?
  /// The range of the feed now: content may take hours, and its sender is to hear of others.
  public var range: FeedRange

  /// An answer.
  public init(received: Int, rejection: Rejection? = nil, range: FeedRange) {
    self.received = received
    self.rejection = rejection
    self.range = range
  }
}

/// Asks for a part of the content of the attachment that a key's entry names now.
public struct ContentRequest: Sendable, Hashable {
  /// The replica that asks.
  public var replica: ReplicaID
  /// The key.
  public var key: [UInt8]
  /// Which content.
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
  /// The part; none only behind the content's end. Nil where there is nothing to be had: the key's
  /// entry is out of reach or names another attachment by now, or the peer lacks the content.
  public var bytes: [UInt8]?

  /// A part.
  public init(bytes: [UInt8]?) { self.bytes = bytes }
}
