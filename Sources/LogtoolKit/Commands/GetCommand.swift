internal import ArgumentParser
internal import Tidemark
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
    try StoreAccess(store, console).read { store in
      let found = try store.entry(forKey: wanted, values: !attachment, walks: false)
      guard let entry = found else {
        throw ToolError(.failed, "the key is not in the store")
      }
      if attachment { return try writeAttachment(of: entry, store, console) }
      try ValueOutput.write(entry, to: console)
    }
  }

  private func writeAttachment(
    of entry: Entry, _ store: Store, _ console: Console
  ) throws {
    guard let reference = entry.attachment else {
      throw ToolError(.failed, "the key has no attachment")
    }
    guard let reader = try store.attachment(reference) else {
      throw ToolError(.failed, "the content of the attachment is not in the store")
    }
    try reader.forEachChunk { try console.output.write($0.rawSpan) }
  }
}
