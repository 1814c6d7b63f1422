/// The value of a checkpoint record: the sequences of the newest records of all names. Records are
/// the engine's own entries, which no index knows; see ``RecordTable``.
///
/// ```
/// u8      version, 1
/// varint  the sequence through which records were looked at
/// varint  count; per record:
///   varint  type
///   varint  length of the key, the key
///   varint  the sequence above less that of the record
/// ```
struct RecordCheckpoint: Equatable {
  struct Row: Equatable {
    var name: RecordName
    var sequence: UInt64
  }

  private static let version: UInt8 = 1

  /// The list is complete for the log up to here.
  var through: UInt64
  var rows: [Row]

  var encoded: [UInt8] {
    var writer = ByteWriter(capacity: 16 + rows.count * 28)
    writer.u8(Self.version)
    writer.varint(through)
    writer.varint(rows.count)
    for row in rows {
      writer.varint(UInt64(row.name.type.rawValue))
      writer.blob(row.name.key)
      writer.varint(through - row.sequence)
    }
    return writer.bytes
  }
}

extension RecordCheckpoint {
  /// - Parameter sequence: the record's own. The list was made before it, so `through` is below it.
  init(decoding bytes: RawSpan, at sequence: UInt64) throws(FormatError) {
    var reader = ByteReader(bytes)
    try reader.version(Self.version)
    through = try reader.varint()
    guard through < sequence else { throw FormatError("a list of records from the future") }
    // A row takes three bytes at least.
    let count = try reader.varint(atMost: reader.remaining / 3)
    rows = []
    rows.reserveCapacity(count)
    for _ in 0..<count {
      let type = RecordType(rawValue: UInt32(try reader.varint(atMost: Int(UInt32.max))))
      let key = try reader.blob(atMost: Limits.keyBytes)
      let distance = try reader.varint()
      guard distance < through, type.isListed else {
        throw FormatError("a list of records names what cannot be")
      }
      rows.append(Row(name: RecordName(type, key: key), sequence: through - distance))
    }
    guard reader.remaining == 0 else { throw FormatError("bytes behind a list of records") }
  }
}
