internal import Tidemark
internal import TidemarkEngine
internal import TidemarkSyncProtocol

/// The state that the feed holds at a key whose local value is another one: a record in the log, so
/// that both can be read and the next push says what it is based upon.
struct RemoteState: Sendable, Hashable {
  var position: Position
  var isDeleted: Bool
  var operation: OperationID
  var content: SyncContent
  var commitTime: UInt64
  /// The writer's own time.
  var time: Timestamp?
  /// How often the resolver has run on the key without an end.
  var rounds: Int

  init(_ entry: FeedEntry, rounds: Int = 0) {
    position = entry.position
    isDeleted = entry.kind != .put
    operation = entry.operation
    content = entry.content
    commitTime = entry.commitTime
    time = entry.time
    self.rounds = rounds
  }

  /// Whether the feed has nothing there, not even a delete.
  var isAbsent: Bool { isDeleted && operation.replica == .none }

  /// Whether it can be a record, also after the resolver has run.
  var fitsBeside: Bool {
    content.value.count <= Limits.valueBytes - (32 << 10)
      || encoded.count <= Limits.valueBytes - 16
  }

  var encoded: [UInt8] {
    var writer = ByteWriter()
    position.encode(into: &writer)
    writer.u8(isDeleted ? 1 : 0)
    writer.bytes.append(contentsOf: operation.replica.bytes)
    writer.varint(operation.sequence)
    writer.varint(commitTime)
    writer.varint(UInt64(rounds))
    writer.u8(time == nil ? 0 : 1)
    if let time {
      writer.u64(UInt64(bitPattern: time.seconds))
      writer.u32(time.nanoseconds)
    }
    writer.varint(UInt64(content.labels.count))
    for label in content.labels { writer.blob(label.bytes) }
    writer.u8(content.hash == nil ? 0 : 1)
    if let hash = content.hash { writer.blob(hash) }
    writer.u8((content.maxAgeSeconds == nil ? 0 : 1) | (content.attachment == nil ? 0 : 2))
    if let seconds = content.maxAgeSeconds { writer.varint(UInt64(seconds)) }
    if let attachment = content.attachment {
      writer.raw(attachment.sha256)
      writer.varint(attachment.length)
    }
    writer.bytes.append(contentsOf: content.value)
    return writer.bytes
  }

  init(decoding bytes: RawSpan) throws(FormatError) {
    var reader = ByteReader(bytes)
    position = try Position(from: &reader)
    isDeleted = try reader.u8() != 0
    let replica = ReplicaID(padding: try reader.array(ReplicaID.byteCount))
    operation = OperationID(replica: replica, sequence: try reader.varint())
    commitTime = try reader.varint()
    rounds = try reader.varint(atMost: 1 << 20)
    if try reader.u8() != 0 {
      let seconds = Int64(bitPattern: try reader.u64())
      time = Timestamp(seconds: seconds, nanoseconds: min(try reader.u32(), 999_999_999))
    }
    content = SyncContent()
    for _ in 0..<(try reader.varint(atMost: Limits.labelsPerEntry)) {
      content.labels.append(EntryLabel(try reader.blob()))
    }
    if try reader.u8() != 0 { content.hash = try reader.blob() }
    let flags = try reader.u8()
    if flags & 1 != 0 {
      content.maxAgeSeconds = UInt32(try reader.varint(atMost: Int(UInt32.max)))
    }
    if flags & 2 != 0 {
      content.attachment = AttachmentReference(
        sha256: try reader.array(SHA256.byteCount),
        length: try reader.varint(atMost: Limits.attachmentBytes))
    }
    content.value = try reader.array(reader.remaining)
  }
}
