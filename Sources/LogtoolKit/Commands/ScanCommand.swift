internal import ArgumentParser
internal import Tidemark
internal import TidemarkEngine

/// Lists keys.
struct ScanCommand: ToolCommand {
  static let configuration = CommandConfiguration(
    commandName: "scan",
    abstract: "List keys by prefix, range and labels, in byte order or another.",
    discussion: """
      Examples:
        logtool scan S --label section:games --keys
        logtool scan S --not-label archived --order time --reverse --limit 20
        logtool scan S --any-label inbox --any-label today --values --output jsonl
        logtool scan S --prefix articles/ --cache

      Text output has the key, its sequence and its labels with tabs between, with --values the \
      key and the value. --from is the first key, --to the one behind the last. Together the \
      conditions narrow.
      """)

  @OptionGroup var global: GlobalOptions
  @OptionGroup var options: ScanOptions

  @Argument(help: "The store's directory.", completion: .directory)
  var store: String

  func run(_ console: Console) throws {
    var listing = Listing(console: console, options: options)
    try StoreAccess(store, console).read { store in
      if options.cache { listing.caches = try CachedEntries(store) }
      _ = try listing.run(store.view())
    }
  }
}
