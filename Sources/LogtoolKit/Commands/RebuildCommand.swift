internal import ArgumentParser
internal import Tidemark
internal import TidemarkEngine

/// Makes the index anew.
struct RebuildCommand: ToolCommand {
  static let configuration = CommandConfiguration(
    commandName: "rebuild",
    abstract: "Make the index anew from the log; changes the store.",
    discussion: """
      Example:
        logtool rebuild S

      The log holds everything, so that a sorted run which was lost or damaged costs nothing but \
      time. The old sorted runs are replaced by a new one.
      """)

  @OptionGroup var global: GlobalOptions

  @Argument(help: "The store's directory.", completion: .directory)
  var store: String

  func run(_ console: Console) throws {
    let status = try StoreAccess(store, console).write { store in
      try store.blocking.rebuildIndex()
      return try store.status
    }
    if console.settings.format == .text {
      console.say(
        "made the index of \(HumanText.count(status.keys)) keys anew from the log, "
          + "\(HumanText.size(status.bytes.index))")
    } else {
      let members: [JSONValue.Member] = [
        .init("keys", .integer(status.keys)), .init("sequence", .unsigned(status.sequence)),
        .init("index_bytes", .integer(status.bytes.index)),
      ]
      try console.output.line(.object(members))
    }
  }
}
