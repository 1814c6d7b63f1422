internal import ArgumentParser
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
    let status = try StoreAccess(store, console).write { engine in
      try engine.writeImage()
      return try engine.status()
    }
    let image = status.images.last
    let file = image.map { StoreLayout.indexDirectory + "/" + $0.fileName }
    if console.settings.format != .text {
      try console.output.line(
        .object([
          .init("file", .optional(file)), .init("sequence", .unsigned(image?.sequence ?? 0)),
          .init("bytes", .integer(image?.length ?? 0)),
        ]))
    } else if let image, let file {
      console.say("\(file) covers sequence \(image.sequence), \(HumanText.size(image.length))")
    } else {
      console.say("the store is empty and needs no image")
    }
  }
}
