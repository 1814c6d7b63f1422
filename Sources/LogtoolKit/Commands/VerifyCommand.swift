internal import ArgumentParser
internal import TidemarkEngine

/// Reads everything and checks it.
struct VerifyCommand: RemoteCommand {
  static let configuration = CommandConfiguration(
    commandName: "verify",
    abstract: "Read the whole store and check every checksum.",
    discussion: """
      Examples:
        logtool verify S
        logtool verify S --output json
        logtool verify S --remote https://sync.example.org/notes

      Exit status 2 when something is wrong: each finding has the file, the offset and the \
      sequences. Damage to the log is put on record in the store, unless that is in use, so that \
      it is not written over; nothing else is changed. See doctor for what to do.

      With --remote the store is compared with a peer instead, by sums, as diff does.
      """)

  @OptionGroup var global: GlobalOptions
  @OptionGroup var keys: KeyOptions
  @OptionGroup var options: RemoteOptions

  @Argument(help: "The store's directory.", completion: .directory)
  var store: String

  @Option(
    help: "Compare with a peer: a URL, or the directory of a store.", completion: .directory)
  var remote: RemoteTarget?

  func run(_ console: Console) throws {
    if let remote {
      return try RemoteDifference(console: console, keys: keys.style).tell(store, remote, options)
    }
    let report = try StoreAccess(store, console).verify(recordsDamage: true)
    try VerifyOutput(console: console, report: report, explains: false).print()
  }
}
