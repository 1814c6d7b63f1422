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

      Exit status 1 when the key is not there.
      """)

  @OptionGroup var global: GlobalOptions
  @OptionGroup var keys: KeyOptions

  @Argument(help: "The store's directory.", completion: .directory)
  var store: String

  @Argument(help: "The key.")
  var key: String

  func run(_ console: Console) throws {
    let wanted = try keys.key(key)
    try StoreAccess(store, console).read { engine in
      guard let slot = try engine.slot(ofKey: wanted.rawSpan), !slot.isDeleted else {
        throw ToolError(.failed, "the key is not in the store")
      }
      let info = try engine.info(try engine.entry(at: slot.sequence))
      let value = try engine.value(of: info)
      try ValueOutput.write(LoadedEntry(key: wanted, info: info, value: value), to: console)
    }
  }
}
