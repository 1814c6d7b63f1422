internal import ArgumentParser
internal import Tidemark
internal import TidemarkEngine

/// Tells everything about a key.
struct ExplainCommand: ToolCommand {
  static let configuration = CommandConfiguration(
    commandName: "explain",
    abstract: "Tell who wrote a key, where it lies, and why it is still on disk.",
    discussion: """
      Examples:
        logtool explain S note/1
        logtool explain S note/1 --output json

      Exit status 1 when the store knows nothing of the key.
      """)

  @OptionGroup var global: GlobalOptions
  @OptionGroup var keys: KeyOptions

  @Argument(help: "The store's directory.", completion: .directory)
  var store: String

  @Argument(help: "The key.")
  var key: String

  func run(_ console: Console) throws {
    let wanted = try keys.key(key)
    let explanation = try StoreAccess(store, console).read { store in
      try ExplainedKey(of: wanted, in: store)
    }
    guard let explanation else {
      throw ToolError(.failed, "the store knows nothing of the key")
    }
    guard console.settings.format == .text else {
      return try console.output.line(explanation.json)
    }
    for (name, text) in explanation.lines {
      let label = name + String(repeating: " ", count: max(0, 10 - name.count))
      try console.output.line(console.prose(console.paint(label, .bold) + text, indent: 10))
    }
  }
}
