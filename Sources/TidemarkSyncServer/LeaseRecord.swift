internal import TidemarkEngine
internal import TidemarkSyncProtocol

/// For how long a feed waits for a replica, and where that replica stood.
///
/// ```
/// u8      version, 2
/// varint  when the lease ends, milliseconds since 1970; 2^64-1 for never
/// u64, varint  the replica's cursor: epoch, offset
/// varint  the highest delete that was gone when the replica began with nothing
/// varint  until when deletes are kept for it
/// ```
struct LeaseRecord: Sendable {
  private static let version: UInt8 = 2

  var expires: UInt64
  /// Until when deletes are kept: as long as it goes on for a replica that reads, not at all for
  /// one that has only pushed.
  var readsUntil: UInt64
  var cursor: Position
  /// A replica that held nothing then has not missed deletes up to here, wherever its cursor is.
  var clearedThrough: UInt64
  /// Whether the replica is known to have pushed. Its mark tells that, not this record.
  var hasPushed: Bool

  /// Whether the replica may hold what others delete. A page that it has not asked beyond may have
  /// reached it; but what it does not hear of then, it finds out by its next pull.
  var isActive: Bool { hasPushed || cursor.offset > 0 }

  /// Whether deletes behind the cursor are kept for the replica.
  func isReading(at time: UInt64) -> Bool { min(expires, readsUntil) > time }

  var encoded: [UInt8] {
    var writer = ByteWriter()
    writer.u8(Self.version)
    writer.varint(expires)
    writer.u64(cursor.epoch)
    writer.varint(cursor.offset)
    writer.varint(clearedThrough)
    writer.varint(readsUntil)
    return writer.bytes
  }
}

extension LeaseRecord {
  init(decoding bytes: RawSpan, hasPushed: Bool) throws(FormatError) {
    var reader = ByteReader(bytes)
    guard try reader.u8() == Self.version else {
      throw FormatError("unknown version of a lease", isNewer: true)
    }
    expires = try reader.varint()
    cursor = Position(epoch: try reader.u64(), offset: try reader.varint())
    clearedThrough = try reader.varint()
    readsUntil = try reader.varint()
    self.hasPushed = hasPushed
    guard reader.remaining == 0 else { throw FormatError("bytes behind a lease") }
  }
}
