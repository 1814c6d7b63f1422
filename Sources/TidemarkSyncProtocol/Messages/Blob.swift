package import Tidemark
internal import TidemarkEngine

/// Asks for a part of a large value that stands in the feed.
public struct DownloadRequest: Sendable, Hashable {
  /// The replica that asks.
  public var replica: ReplicaID
  /// Where the entry stands that has it.
  public var position: Position
  /// How many bytes to leave out at the beginning.
  public var offset: Int
  /// How many bytes are wanted at most, at least one.
  public var limit: Int

  /// Most bytes of one part.
  public static let mostBytes = 4 << 20
  /// A part has as many, unless it is the last, however few are wanted.
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
  /// The part; none only behind the value's end.
  public var bytes: [UInt8]

  /// A part.
  public init(length: Int, bytes: [UInt8]) {
    self.length = length
    self.bytes = bytes
  }
}

/// Large values travel apart from their changes, in parts: an upload or a download that was cut off
/// goes on where it was, so a value that takes minutes comes through where connections last for
/// seconds.
extension SyncContent {
  /// Values of more bytes travel apart where the transport has it: they would not fit into a
  /// message beside anything else.
  public static let mostInlineBytes = 256 << 10

  /// Leaves a large value's name in its place.
  package mutating func moveApart() {
    guard value.count > Self.mostInlineBytes else { return }
    blob = Self.name(of: value)
    value = []
  }

  /// The same with a large value's name in its place.
  package var movedApart: SyncContent {
    var content = self
    content.moveApart()
    return content
  }

  /// The name of a value that travels apart: it has the form of an attachment's.
  package static func name(of value: [UInt8]) -> AttachmentReference {
    AttachmentReference(sha256: SHA256.hash(value.rawSpan), length: value.count)
  }
}
