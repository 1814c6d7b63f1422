internal import ArgumentParser
internal import SyncServerKit
internal import TidemarkSyncServer

private let defaults = ServerOptions(dataDirectory: "").handler

/// The options that bound attachments, and uploads of attachments and large values.
struct AttachmentOptions: ParsableArguments {
  @Option(0...1 << 40, "bytes", "Largest attachment in bytes; 0 takes none.")
  var maxAttachment = defaults.attachmentBytes
  @Option(
    1...1 << 20, "count", "Most attachments and large values of a database on their way at a time.")
  var maxUploads = defaults.attachmentUploads
  @Option(0...1 << 50, "bytes", "What these may take on the disk together, in bytes.")
  var maxUploadBytes = defaults.attachmentUploadBytes

  func apply(to options: inout ServerOptions) {
    options.handler.attachmentBytes = maxAttachment
    options.handler.attachmentUploads = maxUploads
    options.handler.attachmentUploadBytes = maxUploadBytes
  }
}
