package import Tidemark
internal import TidemarkEngine

/// Asks for a part of the large value of an entry in the feed.
public struct DownloadRequest: Sendable, Hashable {
  /// The replica that asks.
  public var replica: ReplicaID
  /// The position of the entry.
  public var position: Position
  /// How many bytes to leave out at the beginning.
  public var offset: Int
  /// How many bytes are wanted at most, at least one.
  public var limit: Int

  /// Most bytes of one part.
  public static let mostBytes = 4 << 20
  /// A part has at least as many, unless it is the last, even if fewer are wanted.
  package static let leastBytes = 64 << 10

  /// Asks for a part.
  public init(replica: ReplicaID, position: Position, offset: Int, limit: Int) {
    self.replica = replica
    self.position = position
    self.offset = offset
    self.limit = limit
  }
}

/// A part of a large value.
public struct DownloadAnswer: Sendable, Hashable {
  /// The length of the value as a whole.
  public var length: Int
  /// The part; empty only at the value's end.
  public var bytes: [UInt8]

  /// A part.
  public init(length: Int, bytes: [UInt8]) {
    self.length = length
    self.bytes = bytes
  }
}

/// Large values are transferred separately from their changes, in parts: an interrupted transfer
/// resumes, so a value that takes minutes arrives even if connections last for seconds.
extension SyncContent {
  /// Larger values are transferred separately where the transport supports it: in a batch or page
  /// there would be no room for anything else.
  public static let mostInlineBytes = 256 << 10

  /// Replaces a large value by a reference to it (``blob``).
  package mutating func moveApart() {
    guard value.count > Self.mostInlineBytes else { return }
    blob = Self.name(of: value)
    value = []
  }

  /// The same with a reference in place of a large value.
  package var movedApart: SyncContent {
    var content = self
    content.moveApart()
    return content
  }

  /// The reference to a large value: its hash and length, as for attachments.
  package static func name(of value: [UInt8]) -> AttachmentReference {
    AttachmentReference(sha256: SHA256.hash(value.rawSpan), length: value.count)
  }
}
