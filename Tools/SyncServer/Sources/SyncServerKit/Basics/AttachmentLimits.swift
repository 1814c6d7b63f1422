internal import TidemarkSyncServer

/// The attachments that a database takes.
public struct AttachmentLimits: Sendable {
  /// Most bytes of one content; 0 takes none.
  public var bytes = 4 << 30
  /// Most contents that are on their way, or wait for the changes that name them.
  public var uploads = 64
  /// Most bytes on the disk of all of these; one content fits in any case.
  public var uploadBytes = 16 << 30

  /// The defaults.
  public init() {}

  func apply(to options: inout SyncHandler.Options) {
    options.attachmentBytes = bytes
    options.attachmentUploads = uploads
    options.attachmentUploadBytes = uploadBytes
  }
}
