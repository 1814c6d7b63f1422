internal import ArgumentParser
internal import Tidemark
internal import TidemarkEngine

/// Lists labels.
struct LabelsCommand: ToolCommand {
  static let configuration = CommandConfiguration(
    commandName: "labels",
    abstract: "List the labels in use, with how many keys carry each.",
    discussion: """
      Examples:
        logtool labels S
        logtool labels S --prefix section:
      """)

  @OptionGroup var global: GlobalOptions

  @Argument(help: "The store's directory.", completion: .directory)
  var store: String

  @Option(help: "Labels that begin with this.")
  var prefix = ""

  func run(_ console: Console) throws {
    try StoreAccess(store, console).read { store in
      let printer = EntryPrinter(console: console)
      var list = try ListPrinter(console, "labels", empty: "no label is in use")
      for (label, count) in try store.labels().map({ ($0.label.bytes, $0.count) })
      where count > 0 && label.starts(with: prefix.utf8) {
        try list.add {
          .object([
            .bytes("label", label), .init("keys", .integer(count)),
          ])
        } text: { () throws(ToolError) in
          try printer.appendLine(key: label, after: [Array(String(count).utf8)])
        }
      }
      try list.end()
    }
  }
}
