internal import TidemarkEngine

/// Names a value that travels apart from its change, in parts, because it is large: its length and
/// 128 bits over it.
///
/// An upload that was cut off goes on where it was, so a value that takes minutes comes through
/// where connections last for seconds. For integrity, no proof against somebody who makes
/// collisions of his own data on purpose.
public struct BlobID: Sendable, Hashable {
  /// XXH64 over the value, one seed.
  public var low: UInt64
  /// XXH64 over the value, another seed.
  public var high: UInt64
  /// The length of the value in bytes.
  public var length: Int

  /// Values of more bytes travel apart where the transport has it: they would not fit into a
  /// message beside anything else.
  public static let leastLength = 256 << 10

  private static let lowSeed: UInt64 = 0x424c_4f42_4c4f_5731
  private static let highSeed: UInt64 = 0x424c_4f42_4849_4731

  /// The name of a value.
  public init(of value: [UInt8]) {
    low = XXH64.hash(value.rawSpan, seed: Self.lowSeed)
    high = XXH64.hash(value.rawSpan, seed: Self.highSeed)
    length = value.count
  }

  package init(low: UInt64, high: UInt64, length: Int) {
    self.low = low
    self.high = high
    self.length = length
  }
}

/// A part of a large value on its way to a peer, before the change that has it.
public struct UploadRequest: Sendable, Hashable {
  /// The replica that sends it: the value is kept for its changes only.
  public var replica: ReplicaID
  /// Which value.
  public var blob: BlobID
  /// How many bytes of the value come before this part.
  public var offset: Int
  /// The part: ``leastBytes`` at least, unless it is the last. None asks how much is there.
  public var bytes: [UInt8]

  /// Shorter parts are refused, but at the value's end: each of them is an entry of a log.
  public static let leastBytes = 64 << 10

  /// A part of a value.
  public init(replica: ReplicaID, blob: BlobID, offset: Int, bytes: [UInt8]) {
    self.replica = replica
    self.blob = blob
    self.offset = offset
    self.bytes = bytes
  }
}

/// How much of a large value is there.
public struct UploadAnswer: Sendable, Hashable {
  /// So many bytes from the beginning; the next part begins there. It may be less than it was, and
  /// more than was sent in this try.
  public var received: Int

  /// An answer.
  public init(received: Int) { self.received = received }
}

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

extension SyncContent {
  /// Leaves a large value's name in its place.
  package mutating func moveApart() {
    guard value.count > BlobID.leastLength else { return }
    blob = BlobID(of: value)
    value = []
  }

  /// The same with a large value's name in its place.
  package var movedApart: SyncContent {
    var content = self
    content.moveApart()
    return content
  }
}
