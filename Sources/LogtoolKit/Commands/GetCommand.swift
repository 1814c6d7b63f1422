internal import ArgumentParser
internal import TidemarkEngine

/// Prints a value.
struct GetCommand: ToolCommand {
  static let configuration = CommandConfiguration(
    commandName: "get",
    abstract: "Print the value of a key, as it is.",
    discussion: """
      Examples:
        logtool get S note/1 > note.txt
        logtool get S note/1 --output json    # with labels, times and sequence
        logtool get S film/7 --attachment > film.mp4

      Exit status 1 when the key is not there, or the content of its attachment is not.
      """)

  @OptionGroup var global: GlobalOptions
  @OptionGroup var keys: KeyOptions

  @Argument(help: "The store's directory.", completion: .directory)
  var store: String

  @Argument(help: "The key.")
  var key: String

  @Flag(help: "The content of the key's attachment, not the value.")
  var attachment = false

  func run(_ console: Console) throws {
    let wanted = try keys.key(key)
    try StoreAccess(store, console).read { engine in
      guard let slot = try engine.slot(ofKey: wanted.rawSpan), !slot.isDeleted else {
        throw ToolError(.failed, "the key is not in the store")
      }
      let info = try engine.info(try engine.entry(at: slot.sequence))
      if attachment { return try writeAttachment(info, engine, console) }
      let value = try engine.value(of: info)
      try ValueOutput.write(LoadedEntry(key: wanted, info: info, value: value), to: console)
    }
  }

  private func writeAttachment(
    _ info: EntryInfo, _ engine: Engine, _ console: Console
  ) throws {
    guard let id = info.attributes.attachment else {
      throw ToolError(.failed, "the key has no attachment")
    }
    guard let reader = try engine.openAttachment(id) else {
      throw ToolError(.failed, "the content of the attachment is not in the store")
    }
    defer { reader.close() }
    var offset = 0
    while offset < reader.length {
      let bytes = try reader.read(at: offset, count: reader.length - offset)
      try console.output.write(bytes.rawSpan)
      offset += bytes.count
    }
  }
}
