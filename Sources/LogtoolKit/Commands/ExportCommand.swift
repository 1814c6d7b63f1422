internal import ArgumentParser
internal import Tidemark
internal import TidemarkEngine

/// Writes a store as NDJSON.
struct ExportCommand: ToolCommand {
  static let configuration = CommandConfiguration(
    commandName: "export",
    abstract: "Write the entries as NDJSON, which import reads.",
    discussion: """
      Examples:
        logtool export S > notes.ndjson
        logtool export S --at 2026-09-01 --label inbox
        logtool export S --history | zstd > everything.ndjson.zst
        logtool export S --attachments files > notes.ndjson

      The newest state, or that of a moment, comes in key order; a history in sequence order, with \
      seq and op_id (replica.sequence) and with deletes and touches.
      """)

  @OptionGroup var global: GlobalOptions
  @OptionGroup var keys: KeyOptions
  @OptionGroup var labels: LabelOptions
  @OptionGroup var library: LibraryKeyOptions

  @Argument(help: "The store's directory.", completion: .directory)
  var store: String

  @Option(
    parsing: .unconditional, help: "The state of a moment: \(Moment.form).",
    transform: Moment.parse)
  var at: Moment?

  @Flag(help: "Every entry that is kept, rather than the newest of each key.")
  var history = false

  @Option(help: "A directory for the content of attachments.", completion: .directory)
  var attachments: String?

  @Option(help: "Keys that begin with this.")
  var prefix = ""

  func run(_ console: Console) throws {
    let query = EntryQuery(
      prefix: try keys.bytes(prefix, "prefix"), labels: try labels.filter())
    try StoreAccess(store, console).read { store in
      let until = try at?.sequence(in: store, console)
      var exporter = try Exporter(console, store, library, attachments: attachments)
      defer { exporter.warnOfAttachments() }
      if history {
        try exporter.writeHistory(query, until: until)
      } else {
        try exporter.writeState(query, at: until)
      }
      console.say("exported \(HumanText.count(exporter.count, "entry", "entries"))")
    }
  }
}
