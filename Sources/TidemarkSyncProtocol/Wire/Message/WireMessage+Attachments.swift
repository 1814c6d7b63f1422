internal import Tidemark
package import TidemarkEngine

extension WireMessage {
  func checkAttachment() throws(FormatError) {
    switch self {
    case .attachRequest(let request): try request.check()
    case .attachAnswer(let answer): try answer.check()
    case .fetchRequest(let request): try request.check()
    case .fetchAnswer(let answer): try answer.check()
    default: break
    }
  }
}

extension HelloAnswer {
  package func checkAttachments() throws(FormatError) {
    guard (0...Limits.attachmentBytes).contains(attachmentBytes ?? 0) else {
      throw FormatError("attachments are larger than they may be")
    }
  }
}

extension AttachmentReference {
  package func check() throws(FormatError) {
    guard sha256.count == SHA256.byteCount else {
      throw FormatError("an attachment's hash has \(sha256.count) bytes")
    }
    try Self.check(length)
  }

  /// Lengths of contents, and places in them.
  fileprivate static func check(_ length: Int) throws(FormatError) {
    guard (0...Limits.attachmentBytes).contains(length) else {
      throw FormatError("a length is \(length); 0 to \(Limits.attachmentBytes) are allowed")
    }
  }
}

extension AttachRequest {
  fileprivate func check() throws(FormatError) {
    try WireMessage.check(key: key)
    try attachment.check()
    guard (0...attachment.length).contains(offset), bytes.count <= attachment.length - offset else {
      throw FormatError("a part reaches beyond its content")
    }
    guard bytes.count <= Self.mostBytes else {
      throw FormatError("a part has \(bytes.count) bytes; at most \(Self.mostBytes) are allowed")
    }
    guard offset % Self.partBytes == 0 || bytes.isEmpty,
      bytes.count % Self.partBytes == 0 || offset + bytes.count == attachment.length
    else {
      throw FormatError("a part does not begin and end at a multiple of \(Self.partBytes) bytes")
    }
  }
}

extension AttachAnswer {
  fileprivate func check() throws(FormatError) {
    try range.check()
    try AttachmentReference.check(received)
    guard let rejection else { return }
    guard rejection.code.utf8.count <= WireLimits.codeBytes,
      rejection.message.utf8.count <= WireLimits.textBytes
    else { throw FormatError("text too long") }
  }
}

extension ContentRequest {
  fileprivate func check() throws(FormatError) {
    try WireMessage.check(key: key)
    try attachment.check()
    try AttachmentReference.check(offset)
    guard (1...AttachRequest.mostBytes).contains(limit) else {
      throw FormatError(
        "the limit is \(limit); 1 to \(AttachRequest.mostBytes) bytes are allowed")
    }
  }
}

extension ContentAnswer {
  fileprivate func check() throws(FormatError) {
    guard (bytes?.count ?? 0) <= AttachRequest.mostBytes else {
      throw FormatError("a part is longer than it may be")
    }
  }
}
