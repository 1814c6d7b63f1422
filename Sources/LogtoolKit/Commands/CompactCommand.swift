internal import ArgumentParser
internal import Tidemark
internal import TidemarkEngine

/// Makes a store smaller.
struct CompactCommand: ToolCommand {
  static let configuration = CommandConfiguration(
    commandName: "compact",
    abstract: "Rewrite the log without what is not needed any more; changes the store.",
    discussion: """
      Examples:
        logtool compact S                   # keeps what the store's retention keeps
        logtool compact S --drop-history --dry-run
        logtool compact S --drop-history --dense
        logtool compact S --key-file OLD --rekey NEW

      With the default retention nothing is dropped; segments are merged and compressed better. \
      What has nothing to gain stays as it is. On a disk without room for that, segments are \
      rewritten one by one that lose something. --drop-history drops all superseded versions for \
      this once: moments of the past can then no longer be looked at.

      --rekey encrypts the whole store with another key, also one that was not encrypted. If it is \
      interrupted, call it again with the same keys; until then the store needs both.

      What a peer has yet to acknowledge stays in any case: of a key with a pending change the \
      newest version and the one that it was made upon, and deletes. It says how much that is.
      """)

  @OptionGroup var global: GlobalOptions

  @Argument(help: "The store's directory.", completion: .directory)
  var store: String

  @Flag(name: .customLong("drop-history"), help: "Drop every superseded version.")
  var dropsHistory = false

  @Flag(help: "Pack everything densely: least space, slower single reads.")
  var dense = false

  @Option(
    name: .customLong("rekey"),
    help: ArgumentHelp("Encrypt everything with the key in this file.", valueName: "file"),
    completion: .file())
  var newKeyFile: String?

  @Flag(name: .customLong("dry-run"), help: "Only say what would be dropped.")
  var isDryRun = false

  func run(_ console: Console) throws {
    let newKey = try newKeyFile.flatMap { try KeyFile.encryption([$0]) }
    func compact(_ store: Store) throws -> CompactionSummary {
      try store.blocking.compact(
        dropHistory: dropsHistory, dense: dense, dryRun: isDryRun, newKey: newKey)
    }
    let access = StoreAccess(store, console)
    // A plan takes no lock and writes nothing: it can be made while a program is running.
    let report =
      isDryRun ? try access.read(compact) : try access.write(newKey: newKey, compact)
    guard console.settings.format == .text else {
      return try console.output.line(json(report))
    }
    let dropped =
      HumanText.count(report.droppedEntries, "superseded entry", "superseded entries") + " and "
      + HumanText.count(report.droppedTombstones, "tombstone", "tombstones")
    defer { for line in HeldText.lines(report.held) { console.say(line) } }
    if isDryRun { return console.say("would drop \(dropped)") }
    if report.attachmentsRemoved > 0 {
      console.say(
        HumanText.count(report.attachmentsRemoved, "attachment", "attachments")
          + " that no entry names went, \(HumanText.size(report.attachmentBytesFreed))")
    }
    guard report.segmentsRewritten > 0 else {
      return console.say(
        "nothing to gain: the log stays as it is, \(HumanText.size(report.bytesAfter)) in "
          + HumanText.count(report.segmentsAfter, "segment", "segments"))
    }
    let before = HumanText.count(report.segmentsBefore, "segment", "segments")
    console.say(
      "\(HumanText.size(report.bytesBefore)) in \(before) became "
        + "\(HumanText.size(report.bytesAfter)) in \(report.segmentsAfter); dropped \(dropped)")
  }

  private func json(_ report: CompactionSummary) -> JSONValue {
    .object([
      .init("dry_run", .bool(isDryRun)),
      .init("segments_before", .integer(report.segmentsBefore)),
      .init("segments_after", .integer(report.segmentsAfter)),
      .init("segments_rewritten", .integer(report.segmentsRewritten)),
      .init("bytes_before", .integer(report.bytesBefore)),
      .init("bytes_after", .integer(report.bytesAfter)),
      .init("dropped_entries", .integer(report.droppedEntries)),
      .init("dropped_tombstones", .integer(report.droppedTombstones)),
      .init("attachments_removed", .integer(report.attachmentsRemoved)),
      .init("attachment_bytes_freed", .integer(report.attachmentBytesFreed)),
      .init("history_from", .unsigned(report.historyFrom)),
      .init("held", HeldText.json(report.held)),
    ])
  }
}
