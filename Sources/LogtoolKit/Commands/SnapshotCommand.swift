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

      The store writes images by itself; this is for those who do not want to wait. For a copy of
      the store see backup, for a state of the past at and export --at.
      """)

  @OptionGroup var global: GlobalOptions

  @Argument(help: "The store's directory.")
  var store: String

  func run(_ console: Console) throws {
    let status = try StoreAccess(store, console).write { engine in
      try engine.writeImage()
      return try engine.status()
    }
    guard let image = status.images.last else {
      return console.say("the store is empty and needs no image")
    }
    let file = StoreLayout.indexDirectory + "/" + image.fileName
    if console.settings.format == .text {
      console.say("\(file) covers sequence \(image.sequence), \(HumanText.size(image.length))")
    } else {
      let members: [JSONValue.Member] = [
        .init("file", .string(file)), .init("sequence", .unsigned(image.sequence)),
        .init("bytes", .integer(image.length)),
      ]
      try console.output.line(JSONValue.object(members).text)
    }
  }
}
