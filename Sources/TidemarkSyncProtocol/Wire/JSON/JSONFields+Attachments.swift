internal import Tidemark
internal import TidemarkEngine

/// Attachments from JSON: `WireProtocol.md`, section "Attachments".
extension JSONFields {
  mutating func attachRequest() throws(FormatError) -> AttachRequest {
    AttachRequest(
      replica: try required(replica("replica"), "replica"),
      key: try required(bytes("key", base64: "key_base64"), "key"),
      attachment: try required(attachment(), "attachment"), offset: try place("offset"),
      bytes: try required(bytes("bytes", base64: "bytes_base64"), "bytes"))
  }

  mutating func attachAnswer() throws(FormatError) -> AttachAnswer {
    AttachAnswer(
      received: try place("received"),
      rejection: try text("code").map { (code) throws(FormatError) in
        Rejection(code: code, message: try text("message") ?? "")
      }, range: try range())
  }

  mutating func fetchRequest() throws(FormatError) -> ContentRequest {
    ContentRequest(
      replica: try required(replica("replica"), "replica"),
      key: try required(bytes("key", base64: "key_base64"), "key"),
      attachment: try required(attachment(), "attachment"), offset: try place("offset"),
      limit: try required(count("limit", atMost: AttachRequest.mostBytes), "limit"))
  }

  /// `sha256:`, sixty-four hexadecimal digits, `:`, the length.
  mutating func attachment(
    _ name: StaticString = "attachment"
  ) throws(FormatError) -> AttachmentReference? {
    guard let text = try text(name) else { return nil }
    guard let id = AttachmentID(text: text) else {
      throw FormatError("\(name) names no content")
    }
    return AttachmentReference(sha256: id.hash, length: Int(id.length))
  }

  private mutating func place(_ name: StaticString) throws(FormatError) -> Int {
    try required(count(name, atMost: Limits.attachmentBytes), name)
  }
}
