package import Tidemark
internal import TidemarkEngine

/// Large values are transferred separately from their changes, in parts: an interrupted transfer
/// resumes, so a value that takes minutes arrives even if connections last for seconds.
extension SyncContent {
  /// The largest value, 256 KiB, that a batch or page holds itself. Larger values are transferred
  /// separately where the transport supports it, since they would leave no room for other entries.
  public static let mostInlineBytes = 256 << 10

  /// Replaces a large value by a reference to it (``blob``).
  package mutating func moveApart() {
    guard value.count > Self.mostInlineBytes else { return }
    blob = Self.name(of: value)
    value = []
  }

  /// The same with a reference in place of a large value.
  package var movedApart: SyncContent {
    var content = self
    content.moveApart()
    return content
  }

  /// The reference to a large value: its hash and length, as for attachments.
  package static func name(of value: [UInt8]) -> AttachmentReference {
    AttachmentReference(sha256: SHA256.hash(value.rawSpan), length: value.count)
  }
}
