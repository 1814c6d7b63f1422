internal import TidemarkEngine

/// For how long a feed waits for a replica, and where that replica stood.
///
/// ```
/// u8      version, 1
/// varint  when the lease ends, milliseconds since 1970; 2^64-1 for never
/// u64, varint  the replica's cursor: epoch, offset
/// varint  the highest delete that was gone when the replica began with nothing
/// ```
struct LeaseRecord: Equatable, Sendable {
  private static let version: UInt8 = 1

  var expires: UInt64
  var cursor: Position
  /// A replica that held nothing then has not missed deletes up to here, wherever its cursor is.
  var clearedThrough: UInt64

  init(expires: UInt64, cursor: Position, clearedThrough: UInt64) {
    self.expires = expires
    self.cursor = cursor
    self.clearedThrough = clearedThrough
  }

  var encoded: [UInt8] {
    var writer = ByteWriter()
    writer.u8(Self.version)
    writer.varint(expires)
    writer.u64(cursor.epoch)
    writer.varint(cursor.offset)
    writer.varint(clearedThrough)
    return writer.bytes
  }

  init(decoding bytes: RawSpan) throws(FormatError) {
    var reader = ByteReader(bytes)
    guard try reader.u8() == Self.version else {
      throw FormatError("unknown version of a lease", isNewer: true)
    }
    expires = try reader.varint()
    cursor = Position(epoch: try reader.u64(), offset: try reader.varint())
    clearedThrough = try reader.varint()
    guard reader.remaining == 0 else { throw FormatError("bytes behind a lease") }
  }
}
