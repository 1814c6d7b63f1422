internal import ArgumentParser
internal import Tidemark
internal import TidemarkEngine

/// Tells a store's figures.
struct StatCommand: ToolCommand {
  static let configuration = CommandConfiguration(
    commandName: "stat",
    abstract: "Tell how much is in a store, and what takes the space.",
    discussion: """
      Examples:
        logtool stat S
        logtool stat S --output json

      live: entries that are their key's newest. history: superseded and kept. dead: superseded, \
      gone with the next compaction. pinned: dead, were it not for an open view. durable: how far \
      the log is proven to be on the disk. Of what compactions keep for peers there is a line \
      for each.
      """)

  @OptionGroup var global: GlobalOptions

  @Argument(help: "The store's directory.", completion: .directory)
  var store: String

  func run(_ console: Console) throws {
    let (status, held, space) = try StoreAccess(store, console).read { store in
      (
        try store.status, try store.heldHistory(), try StoreSpace(store)
      )
    }
    if console.settings.format == .text {
      for line in StatusText(status, space, console).lines { try console.output.line(line) }
      for line in HeldText.lines(held) { try console.output.line("  " + line) }
    } else {
      try console.output.line(StatusJSON.value(status, held, space))
    }
  }
}
