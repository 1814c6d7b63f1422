internal import TidemarkSyncServer

/// The content that a database takes ahead of its changes: attachments, and large values.
public struct AttachmentLimits: Sendable {
  /// Most bytes of an attachment; 0 takes none.
  public var bytes = 4 << 30
  /// Most contents that are on their way.
  public var uploads = 64
  /// Most bytes on the disk of all of these, and of those that wait for the changes that name them;
  /// one attachment, or the values of one batch, fit in any case.
  public var uploadBytes = 16 << 30

  /// The defaults.
  public init() {}

  func apply(to options: inout SyncHandler.Options) {
    options.attachmentBytes = bytes
    options.attachmentUploads = uploads
    options.attachmentUploadBytes = uploadBytes
  }
}
