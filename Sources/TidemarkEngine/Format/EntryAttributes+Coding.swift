extension EntryAttributes {
  /// Appends the encoding, see the type's table.
  package func encode(into writer: inout ByteWriter) {
    writer.varint(fields.rawValue)
    if let time {
      writer.zigzag(time.seconds)
      writer.varint(UInt64(time.nanoseconds))
    }
    if let hash { Self.encode(hash: hash, into: &writer) }
    if let maxAge { writer.varint(UInt64(maxAge)) }
    if entryClass != .owned { writer.u8(entryClass.rawValue) }
    switch base {
    case .position(let epoch, let offset):
      writer.u64(epoch)
      writer.varint(offset)
    case .operation(let replica, let sequence):
      writer.raw(replica)
      writer.varint(sequence)
    case nil: break
    }
    if let origin {
      writer.raw(origin.replica)
      writer.varint(origin.sequence)
    }
    if priority != 0 { writer.zigzag(priority) }
    if !after.isEmpty {
      writer.varint(after.count)
      for sequence in after { writer.varint(sequence) }
    }
    if let attachment {
      writer.raw(attachment.hash)
      writer.varint(attachment.length)
    }
    if let alias { writer.blob(alias) }
    if schemaVersion != 0 { writer.varint(UInt64(schemaVersion)) }
    if let generation { writer.blob(generation) }
    if atomicGroup != 0 { writer.varint(atomicGroup) }
    if recordType != 0 { writer.varint(UInt64(recordType)) }
    if writerTime != 0 { writer.varint(writerTime) }
    if let former { former.encode(into: &writer) }
  }

  private static func encode(hash: [UInt8], into writer: inout ByteWriter) {
    // Nil unless the hash is lower-case hexadecimal text, which decoding gives back as it was.
    let packed = hash.isEmpty ? nil : [UInt8](hexDigits: hash)
    let stored = packed ?? hash
    writer.varint(stored.count << 1 | (packed == nil ? 0 : 1))
    writer.raw(stored)
  }

  /// Whether encoded attributes say that the value is cached (a copy of what a server has); false
  /// for those that cannot be decoded, so that such an entry counts as the user's own.
  static func tellCached(_ bytes: RawSpan) -> Bool {
    guard bytes.byteCount > 0 else { return false }
    var reader = ByteReader(bytes)
    guard let bits = try? reader.varint(), Field(rawValue: bits).contains(.entryClass) else {
      return false
    }
    return (try? EntryAttributes(decoding: bytes))?.entryClass == .cache
  }

  /// Decodes attributes, which must fill `bytes` exactly.
  package init(decoding bytes: RawSpan) throws(FormatError) {
    self.init()
    var reader = ByteReader(bytes)
    let bits = try reader.varint()
    guard bits & ~Field.known == 0 else {
      throw FormatError("unknown attributes in an entry", isNewer: true)
    }
    let fields = Field(rawValue: bits)
    if fields.contains(.time) {
      let seconds = try reader.zigzag()
      let nanoseconds = try reader.varint(atMost: 999_999_999)
      time = Timestamp(seconds: seconds, nanoseconds: UInt32(nanoseconds))
    }
    if fields.contains(.hash) { hash = try Self.decodeHash(&reader) }
    if fields.contains(.maxAge) { maxAge = UInt32(try reader.varint(atMost: Int(UInt32.max))) }
    if fields.contains(.entryClass) {
      guard let value = Class(rawValue: try reader.u8()), value != .owned else {
        throw FormatError("unknown class of entry", isNewer: true)
      }
      entryClass = value
    }
    try decodeReplication(fields, &reader)
    if fields.contains(.alias) { alias = try reader.blob(atMost: Limits.aliasBytes) }
    if fields.contains(.schema) {
      schemaVersion = UInt32(try reader.varint(atMost: Int(UInt32.max)))
    }
    if fields.contains(.generation) { generation = try reader.blob(atMost: Limits.generationBytes) }
    if fields.contains(.atomicGroup) { atomicGroup = try reader.varint() }
    if fields.contains(.recordType) {
      recordType = UInt32(try reader.varint(atMost: Int(UInt32.max)))
    }
    if fields.contains(.writerTime) { writerTime = try reader.varint() }
    if fields.contains(.former) { former = try FormerLabels(from: &reader) }
    guard reader.remaining == 0 else { throw FormatError("bytes behind an entry's attributes") }
  }

  private mutating func decodeReplication(
    _ fields: Field, _ reader: inout ByteReader
  ) throws(FormatError) {
    guard !fields.isSuperset(of: [.basePosition, .baseOperation]) else {
      throw FormatError("two bases in an entry")
    }
    if fields.contains(.basePosition) {
      base = .position(epoch: try reader.u64(), offset: try reader.varint())
    }
    if fields.contains(.baseOperation) {
      base = .operation(replica: try reader.array(16), sequence: try reader.varint())
    }
    if fields.contains(.origin) {
      origin = Origin(replica: try reader.array(16), sequence: try reader.varint())
    }
    if fields.contains(.priority) { priority = try reader.zigzag() }
    if fields.contains(.after) {
      let count = try reader.varint(atMost: Limits.afterEdges)
      for _ in 0..<count { after.append(try reader.varint()) }
    }
    if fields.contains(.attachment) {
      attachment = AttachmentID(hash: try reader.array(32), length: try reader.varint())
    }
  }

  private static func decodeHash(_ reader: inout ByteReader) throws(FormatError) -> [UInt8] {
    let coded = try reader.varint(atMost: Limits.hashBytes << 1 | 1)
    guard coded & 1 == 1 else { return try reader.array(coded >> 1) }
    guard coded >> 1 <= Limits.hashBytes / 2 else { throw FormatError("hash too long") }
    return try reader.array(coded >> 1).hexDigits
  }
}
