internal import ArgumentParser
internal import Tidemark
internal import TidemarkEngine

/// Writes a checkpoint of the index.
struct SnapshotCommand: ToolCommand {
  static let configuration = CommandConfiguration(
    commandName: "snapshot",
    abstract: "Write an index checkpoint, so that the next opening is quick; changes the store.",
    discussion: """
      Example:
        logtool snapshot S

      The store writes checkpoints by itself; this is for those who do not want to wait. For a \
      copy of the store see backup, for a state of the past at and export --at.
      """)

  @OptionGroup var global: GlobalOptions

  @Argument(help: "The store's directory.", completion: .directory)
  var store: String

  func run(_ console: Console) throws {
    let run = try StoreAccess(store, console).write { store in
      try store.blocking.snapshot()
      return try store.status.runs.last
    }
    if console.settings.format != .text {
      try console.output.line(
        .object([
          .init("file", .optional(run?.file)), .init("sequence", .unsigned(run?.sequence ?? 0)),
          .init("bytes", .integer(run?.bytes ?? 0)),
        ]))
    } else if let run {
      console.say(
        "\(run.file) covers sequence \(run.sequence), \(HumanText.size(run.bytes))")
    } else {
      console.say("the store is empty and needs no checkpoint")
    }
  }
}
