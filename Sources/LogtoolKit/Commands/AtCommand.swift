internal import ArgumentParser
internal import Tidemark
internal import TidemarkEngine

/// Looks at a moment of the past.
struct AtCommand: ToolCommand {
  static let configuration = CommandConfiguration(
    commandName: "at",
    abstract: "Show a key's value, or all keys, as they were at a moment.",
    discussion: """
      Examples:
        logtool at S 1000                     # the keys after sequence 1000
        logtool at S 2026-09-01 note/1        # the value of one key on that day
        logtool at S 1d3h --label inbox --keys

      A date means what was committed by then, by the store's clock. With --own-time it means the \
      entries whose own times are at or before it, whenever they were committed.
      """)

  @OptionGroup var global: GlobalOptions
  @OptionGroup var options: ScanOptions

  @Argument(help: "The store's directory.", completion: .directory)
  var store: String

  @Argument(help: "The moment: \(Moment.form).", transform: Moment.parse)
  var moment: Moment

  @Flag(name: .customLong("own-time"), help: "Go by the entries' own times; for dates and ages.")
  var byOwnTime = false

  @Argument(help: "The key; all keys when it is left out.")
  var key: String?

  func run(_ console: Console) throws {
    let wanted = try key.map { (text) throws(ToolError) in try options.keys.key(text) }
    try StoreAccess(store, console).read { store in
      let view = try moment.view(of: store, byOwnTime: byOwnTime, console)
      let sequence = view.sequence
      guard let wanted else {
        let listing = Listing(console: console, options: options, emptyWords: "")
        let count = try listing.run(view)
        console.say("\(HumanText.count(count, "key", "keys")) at sequence \(sequence)")
        return
      }
      guard let entry = try view.entry(forKey: wanted, values: true, walks: false) else {
        throw ToolError(.failed, "the key was not in the store at sequence \(sequence)")
      }
      try ValueOutput.write(entry, to: console)
    }
  }
}
