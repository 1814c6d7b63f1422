internal import ArgumentParser
internal import TidemarkEngine

/// Tells what is wrong with a store and what to do.
struct DoctorCommand: ToolCommand {
  static let configuration = CommandConfiguration(
    commandName: "doctor",
    abstract: "Tell what is wrong with a store, what it means, and which command mends it.",
    discussion: """
      Example:
        logtool doctor S

      Checks what verify checks and changes nothing. Exit status 2 when something is wrong.
      """)

  @OptionGroup var global: GlobalOptions

  @Argument(help: "The store's directory.", completion: .directory)
  var store: String

  func run(_ console: Console) throws {
    let report = try StoreAccess(store, console).verify(recordsDamage: false)
    try VerifyOutput(console: console, report: report, explains: true).print()
  }
}
