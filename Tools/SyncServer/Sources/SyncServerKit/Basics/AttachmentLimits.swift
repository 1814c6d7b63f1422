internal import TidemarkSyncServer

/// The limits of a database's attachments and uploads, which precede the push that refers to them.
public struct AttachmentLimits: Sendable {
  /// Most bytes of an attachment; 0 refuses attachments.
  public var bytes = 4 << 30
  /// Most incomplete uploads.
  public var uploads = 64
  /// Most bytes on the disk of all uploads, also complete ones; one attachment, or the values of
  /// one batch, always fit.
  public var uploadBytes = 16 << 30

  /// The defaults.
  public init() {}

  func apply(to options: inout SyncHandler.Options) {
    options.attachmentBytes = bytes
    options.attachmentUploads = uploads
    options.attachmentUploadBytes = uploadBytes
  }
}
