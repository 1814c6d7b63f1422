internal import ArgumentParser
internal import TidemarkEngine

/// Reads everything and checks it.
struct VerifyCommand: ToolCommand {
  static let configuration = CommandConfiguration(
    commandName: "verify",
    abstract: "Read the whole store and check every checksum.",
    discussion: """
      Examples:
        logtool verify S
        logtool verify S --output json

      Exit status 2 when something is wrong: each finding has the file, the offset and the
      sequences. Damage to the log is put on record in the store, unless that is in use, so that it
      is not written over; nothing else is changed. See doctor for what to do.
      """)

  @OptionGroup var global: GlobalOptions

  @Argument(help: "The store's directory.")
  var store: String

  func run(_ console: Console) throws {
    let report = try StoreAccess(store, console).verify(records: true)
    try VerifyOutput(console: console, report: report, explains: false).print()
  }
}
