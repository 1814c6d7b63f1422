package import TidemarkEngine

/// The name of an attachment: the SHA-256 and the length of its content. An attachment is a file
/// beside the log that belongs to an entry.
public struct AttachmentReference: Sendable, Hashable {
  /// The SHA-256 of the attachment's content, 32 bytes.
  public let sha256: [UInt8]
  /// The length of the attachment's content, in bytes.
  public let length: Int

  /// Creates the reference of an attachment from its hash and length.
  /// - Parameters:
  ///   - sha256: the SHA-256 of the content, 32 bytes.
  ///   - length: its length, in bytes.
  public init(sha256: [UInt8], length: Int) { (self.sha256, self.length) = (sha256, length) }

  package init(_ id: AttachmentID) { self.init(sha256: id.hash, length: Int(clamping: id.length)) }

  /// The engine's form.
  package var engineID: AttachmentID { AttachmentID(hash: sha256, length: UInt64(max(0, length))) }
}

extension AttachmentReference: CustomStringConvertible {
  /// The SHA-256 in 64 hexadecimal digits.
  public var description: String { AttachmentID.text(sha256) }
}
