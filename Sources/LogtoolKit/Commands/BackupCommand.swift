internal import ArgumentParser
internal import Tidemark
internal import TidemarkEngine

/// Copies a store while it may be in use.
struct BackupCommand: ToolCommand {
  static let configuration = CommandConfiguration(
    commandName: "backup",
    abstract: "Copy the store into a new directory, also while a program writes to it.",
    discussion: """
      Example:
        logtool backup S /backups/S-today

      The copy holds everything that was committed when the command began, whole batches only, and \
      is a store like any other. Nothing may stand at the target, or an empty directory.

      A copy is made all the same where the disk cannot read parts of the store, without those and \
      with exit status 65: verify says of both what is damaged.
      """)

  @OptionGroup var global: GlobalOptions

  @Argument(help: "The store's directory.", completion: .directory)
  var store: String

  @Argument(help: "The copy's directory, which is created.", completion: .directory)
  var target: String

  func run(_ console: Console) throws {
    let sequence = try StoreAccess(store, console).read { store in
      try store.blocking.backup(to: target)
      return store.lastSequence
    }
    if console.settings.format == .text {
      console.say("copied the store up to sequence \(sequence) to \(target)")
    } else {
      let members: [JSONValue.Member] = [
        .init("target", .string(target)), .init("sequence", .unsigned(sequence)),
      ]
      try console.output.line(.object(members))
    }
  }
}
