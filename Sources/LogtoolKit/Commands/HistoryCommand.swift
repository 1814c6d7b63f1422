internal import ArgumentParser
internal import Tidemark
internal import TidemarkEngine

/// Lists the versions of a key.
struct HistoryCommand: ToolCommand {
  static let configuration = CommandConfiguration(
    commandName: "history",
    abstract: "List the versions of a key that are kept, newest first.",
    discussion: """
      Examples:
        logtool history S note/1
        logtool history S note/1 --values --output jsonl

      Text output has sequence, time, operation, size, labels, and with --values the value. Exit \
      status 1 when the store knows nothing of the key.
      """)

  @OptionGroup var global: GlobalOptions
  @OptionGroup var keys: KeyOptions

  @Argument(help: "The store's directory.", completion: .directory)
  var store: String

  @Argument(help: "The key.")
  var key: String

  @Option(
    parsing: .unconditional, help: "So many versions at most.", transform: NumberText.positive)
  var limit: Int?

  @Flag(help: "Values, too.")
  var values = false

  func run(_ console: Console) throws {
    let wanted = try keys.key(key)
    try StoreAccess(store, console).read { store in
      var versions = try store.versions(ofKey: wanted, values: values)
      var upcoming = try versions.next()
      if upcoming == nil { throw ToolError(.failed, "the store has no history of the key") }
      var list = try ListPrinter(console, "versions")
      var left = limit ?? .max
      while let entry = upcoming {
        try list.add {
          EntryPrinter.json(entry, namesOperation: true, values: values)
        } text: { () throws(ToolError) in
          try add(entry, console)
        }
        left -= 1
        upcoming = left > 0 ? try versions.next() : nil
      }
      try list.end()
    }
  }

  private func add(_ entry: Entry, _ console: Console) throws(ToolError) {
    let printer = EntryPrinter(console: console, keys: keys.style)
    let time = entry.time ?? entry.committed
    var fields = [String(entry.sequence), time.text, entry.kind.name]
    if !entry.kind.removes { fields.append("\(entry.valueLength)") }
    console.output.bytes.append(contentsOf: fields.joined(separator: "\t").utf8)
    if !entry.kind.removes {
      console.output.bytes.append(UInt8(ascii: "\t"))
      console.output.bytes.append(contentsOf: printer.shown(EntryPrinter.labels(entry)))
      if values {
        console.output.bytes.append(UInt8(ascii: "\t"))
        console.output.bytes.append(contentsOf: printer.shown(entry.value))
      }
    }
    try console.output.line("")
  }
}
