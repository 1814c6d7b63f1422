internal import ArgumentParser
internal import SyncServerKit

/// The options that bound attachments, and uploads of attachments and large values.
struct AttachmentOptions: ParsableArguments {
  @Option(
    help: ArgumentHelp(
      "Largest attachment in bytes; 0 takes none. (default: 4294967296)", valueName: "bytes"))
  var maxAttachment: Int?
  @Option(
    help: ArgumentHelp(
      "Most attachments and large values of a database on their way at a time. (default: 64)",
      valueName: "count"))
  var maxUploads: Int?
  @Option(
    help: ArgumentHelp(
      "What these may take on the disk together, in bytes. (default: 17179869184)",
      valueName: "bytes"))
  var maxUploadBytes: Int?

  func apply(to options: inout ServerOptions) throws {
    func number(_ option: Int?, _ name: String, _ range: ClosedRange<Int>) throws -> Int? {
      guard let value = try option ?? Setting.number(name) else { return nil }
      guard range.contains(value) else {
        throw ValidationError(
          "\(name.lowercased()) has to be \(range.lowerBound) to \(range.upperBound)")
      }
      return value
    }
    if let bytes = try number(maxAttachment, "MAX_ATTACHMENT", 0...1 << 40) {
      options.attachments.bytes = bytes
    }
    if let count = try number(maxUploads, "MAX_UPLOADS", 1...1 << 20) {
      options.attachments.uploads = count
    }
    if let bytes = try number(maxUploadBytes, "MAX_UPLOAD_BYTES", 0...1 << 50) {
      options.attachments.uploadBytes = bytes
    }
  }
}
