internal import Tidemark
internal import TidemarkEngine

/// Attachments: `WireProtocol.md`, section "Attachments".
extension WireReader {
  mutating func attachRequest() throws(FormatError) -> AttachRequest {
    AttachRequest(
      replica: try replica(), key: try key(), attachment: try attachment(),
      offset: try contentLength(), bytes: try contentPart())
  }

  mutating func attachAnswer() throws(FormatError) -> AttachAnswer {
    let (range, received) = (try range(), try contentLength())
    guard try flags(WireFlags.isRefused) != 0 else {
      return AttachAnswer(received: received, range: range)
    }
    return AttachAnswer(
      received: received,
      rejection: Rejection(
        code: try text(atMost: WireLimits.codeBytes),
        message: try text(atMost: WireLimits.textBytes)),
      range: range)
  }

  mutating func fetchRequest() throws(FormatError) -> ContentRequest {
    ContentRequest(
      replica: try replica(), key: try key(), attachment: try attachment(),
      offset: try contentLength(), limit: try bytes.varint(atMost: AttachRequest.mostBytes))
  }

  mutating func fetchAnswer() throws(FormatError) -> ContentAnswer {
    guard try flags(WireFlags.isContentThere) != 0 else { return ContentAnswer(bytes: nil) }
    return ContentAnswer(bytes: try contentPart())
  }

  mutating func attachment() throws(FormatError) -> AttachmentReference {
    AttachmentReference(sha256: try bytes.array(SHA256.byteCount), length: try contentLength())
  }

  /// The length of a content, or a place in one: it says nothing of what follows.
  private mutating func contentLength() throws(FormatError) -> Int {
    try bytes.varint(atMost: Limits.attachmentBytes)
  }

  private mutating func contentPart() throws(FormatError) -> [UInt8] {
    try bytes.array(try bytes.varint(atMost: min(AttachRequest.mostBytes, bytes.remaining)))
  }
}

extension AttachmentReference {
  /// As an optional field has it: the hash, and a varint of the length.
  init(field: [UInt8]) throws(FormatError) {
    var reader = ByteReader(field.rawSpan)
    let hash = try reader.array(SHA256.byteCount)
    self.init(sha256: hash, length: try reader.varint(atMost: Limits.attachmentBytes))
    guard reader.remaining == 0 else { throw FormatError("bytes behind an attachment's name") }
  }
}

extension WireWriter {
  mutating func write(_ request: AttachRequest) throws(FormatError) {
    replica(request.replica)
    try key(request.key)
    write(request.attachment)
    out.varint(request.offset)
    bytes(request.bytes)
  }

  mutating func write(_ answer: AttachAnswer) {
    write(answer.range)
    out.varint(answer.received)
    guard let rejection = answer.rejection else { return out.u8(0) }
    out.u8(WireFlags.isRefused)
    text(rejection.code)
    text(rejection.message)
  }

  mutating func write(_ request: ContentRequest) throws(FormatError) {
    replica(request.replica)
    try key(request.key)
    write(request.attachment)
    out.varint(request.offset)
    out.varint(request.limit)
  }

  mutating func write(_ answer: ContentAnswer) {
    guard let part = answer.bytes else { return out.u8(0) }
    out.u8(WireFlags.isContentThere)
    bytes(part)
  }

  mutating func write(_ attachment: AttachmentReference) {
    out.raw(attachment.sha256)
    out.varint(attachment.length)
  }

  /// The optional fields of an entry, if it has any.
  mutating func entryFields(_ attachment: AttachmentReference?, received: UInt64? = nil) {
    guard attachment != nil || received != nil else { return }
    var list = ByteWriter(capacity: 64)
    if let attachment {
      var field = ByteWriter(capacity: 40)
      field.raw(attachment.sha256)
      field.varint(attachment.length)
      list.varint(WireFlags.attachmentField)
      list.blob(field.bytes)
    }
    if let received {
      list.varint(WireFlags.receivedField)
      list.varint(8)
      list.u64(received)
    }
    bytes(list.bytes)
  }
}
