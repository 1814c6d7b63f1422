internal import ArgumentParser
internal import Tidemark
internal import TidemarkEngine

/// Makes an empty store.
struct CreateCommand: ToolCommand {
  static let configuration = CommandConfiguration(
    commandName: "create",
    abstract: "Make an empty store.",
    discussion: """
      Examples:
        logtool create S
        logtool create S --key-file KEY       # an encrypted one

      Nothing may stand at the place, or an empty directory. Exit status 1 when a store is there.
      """)

  @OptionGroup var global: GlobalOptions

  @Argument(help: "The new store's directory.", completion: .directory)
  var store: String

  func run(_ console: Console) throws {
    let access = StoreAccess(store, console)
    guard try !access.exists() else {
      throw ToolError(.failed, "there is a store at \(store) already; nothing was changed")
    }
    let id = try access.write(creates: true) { $0.storeID }
    if console.settings.format == .text {
      console.say("made an empty store at \(store)")
    } else {
      try console.output.line(.object([.init("store_id", .string(id.hexadecimal))]))
    }
  }
}
