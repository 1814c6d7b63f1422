internal import ArgumentParser

/// The root of the command line.
struct Logtool: ParsableCommand {
  static let exitStatus = """
    Exit status: 0 done, 1 not found or failed, 2 findings, 64 usage, 65 damaged, 66 no store, \
    69 peer unavailable, 74 input or output, 75 locked, 76 format too new, 77 no permission, \
    130 interrupted.
    """

  static let configuration = CommandConfiguration(
    commandName: "logtool",
    abstract: "Looks into, fills, mends and compacts Tidemark stores.",
    discussion: """
      Examples:
        logtool import notes.tidemark notes.ndjson.zst
        logtool scan notes.tidemark --prefix note/ --label inbox
        logtool at notes.tidemark 2026-09-01 note/1
        logtool verify notes.tidemark
        logtool replay notes.tidemark --to https://sync.example.org/notes

      Only commands that say so change a store; create, import, pull, replay and copy alone make \
      one that is missing.

      \(exitStatus)
      """,
    version: ToolVersion.text,
    groupedSubcommands: [
      CommandGroup(
        name: "Reading",
        subcommands: [
          GetCommand.self, ScanCommand.self, LabelsCommand.self, ExportCommand.self,
        ]),
      CommandGroup(
        name: "The past",
        subcommands: [
          HistoryCommand.self, AtCommand.self, DiffCommand.self, TailCommand.self,
          ExplainCommand.self,
        ]),
      CommandGroup(
        name: "Writing",
        subcommands: [
          CreateCommand.self, ImportCommand.self, PutCommand.self, DeleteCommand.self,
          UndoCommand.self, CacheCommand.self,
        ]),
      CommandGroup(
        name: "Replication",
        subcommands: [
          ReplayCommand.self, PullCommand.self, CopyCommand.self, PendingCommand.self,
          ParkedCommand.self, PeersCommand.self,
        ]),
      CommandGroup(
        name: "Care",
        subcommands: [
          StatCommand.self, VerifyCommand.self, DoctorCommand.self, SnapshotCommand.self,
          CompactCommand.self, RebuildCommand.self, RepairCommand.self, BackupCommand.self,
        ]),
      CommandGroup(
        name: "The tool itself", subcommands: [CompletionsCommand.self, ManCommand.self]),
    ])
}
