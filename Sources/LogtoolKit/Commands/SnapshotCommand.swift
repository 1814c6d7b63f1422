internal import ArgumentParser
internal import Tidemark
internal import TidemarkEngine

/// Writes an index image.
struct SnapshotCommand: ToolCommand {
  static let configuration = CommandConfiguration(
    commandName: "snapshot",
    abstract: "Write an index image, so that the next opening is quick; changes the store.",
    discussion: """
      Example:
        logtool snapshot S

      The store writes images by itself; this is for those who do not want to wait. For a copy of \
      the store see backup, for a state of the past at and export --at.
      """)

  @OptionGroup var global: GlobalOptions

  @Argument(help: "The store's directory.", completion: .directory)
  var store: String

  func run(_ console: Console) throws {
    let image = try StoreAccess(store, console).write { store in
      try store.blocking.snapshot()
      return try store.status.images.last
    }
    if console.settings.format != .text {
      try console.output.line(
        .object([
          .init("file", .optional(image?.file)), .init("sequence", .unsigned(image?.sequence ?? 0)),
          .init("bytes", .integer(image?.bytes ?? 0)),
        ]))
    } else if let image {
      console.say(
        "\(image.file) covers sequence \(image.sequence), \(HumanText.size(image.bytes))")
    } else {
      console.say("the store is empty and needs no image")
    }
  }
}
