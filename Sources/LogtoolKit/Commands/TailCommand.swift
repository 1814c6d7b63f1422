internal import ArgumentParser
internal import Tidemark
internal import TidemarkEngine

/// Shows the end of the log.
struct TailCommand: ToolCommand {
  static let configuration = CommandConfiguration(
    commandName: "tail",
    abstract: "Show the newest entries of the log, and those that come.",
    discussion: """
      Examples:
        logtool tail S                        # the last ten entries
        logtool tail S --since 1000           # everything after sequence 1000
        logtool tail S --follow --output jsonl

      Text output has sequence, time, operation, key and labels with tabs between. Ctrl-C ends \
      --follow.
      """)

  @OptionGroup var global: GlobalOptions
  @OptionGroup var keys: KeyOptions
  @OptionGroup var library: LibraryKeyOptions

  @Argument(help: "The store's directory.", completion: .directory)
  var store: String

  @Option(
    parsing: .unconditional, help: "Entries after this moment: \(Moment.form).",
    transform: Moment.parse)
  var since: Moment?

  @Option(
    name: [.customShort("n"), .long], parsing: .unconditional,
    help: "Without --since: so many of the last sequences.", transform: NumberText.natural)
  var lines: UInt64 = 10

  @Flag(name: .shortAndLong, help: "Wait for more entries.")
  var follow = false

  @Option(help: "Keys that begin with this.")
  var prefix = ""

  @Flag(help: "Values, too.")
  var values = false

  func validate() throws {
    if follow, global.output == .json {
      throw ValidationError("--follow has no end, so no JSON array; use --output jsonl")
    }
  }

  func run(_ console: Console) throws {
    let prefix = try keys.bytes(self.prefix, "prefix")
    let options = LogFollower.Options(
      prefix: prefix, library: library, values: values, keys: keys.style)
    try StoreAccess(store, console).read { store in
      let last = store.lastSequence
      let start = try since?.sequence(in: store, console) ?? last - min(last, lines)
      // The future cannot be judged yet, nor whether it will be another epoch's.
      guard start <= last else {
        throw ToolError(
          .usage,
          "sequence \(start) is not reached yet; the newest is \(last): leave --since out, or "
            + "give that")
      }
      var follower = try LogFollower(console, store, after: start, options)
      try follower.printNew()
      guard follow else { return try follower.end() }
      console.stopGracefully()
      try console.output.flush()
      while !console.isInterrupted() {
        try follower.waitForMore()
        try follower.printNew()
        try console.output.flush()
      }
      throw ToolError.silent(.interrupted)
    }
  }
}
