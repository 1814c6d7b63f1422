internal import ArgumentParser
internal import Tidemark
internal import TidemarkEngine

/// Takes commits back.
struct UndoCommand: ToolCommand {
  static let configuration = CommandConfiguration(
    commandName: "undo",
    abstract: "Take commits back by new entries; changes the store.",
    discussion: """
      Examples:
        logtool undo S --since 1000 --dry-run
        logtool undo S --since 1h             # all that was written in the last hour
        logtool undo S --range 1001-1003      # these entries alone

      The keys get the values and labels that they had before, in one atomic batch; the history \
      stays, so that an undo can be undone. A commit is undone as a whole, or not. With --range \
      nothing is undone when one of the keys was written again since. --dry-run lists the keys: + \
      comes back, - goes, ~ changes.
      """)

  @OptionGroup var global: GlobalOptions
  @OptionGroup var keys: KeyOptions
  @OptionGroup var write: WriteOptions

  @Argument(help: "The store's directory.", completion: .directory)
  var store: String

  @Option(
    parsing: .unconditional, help: "What came after this moment: \(Moment.form).",
    transform: Moment.parse)
  var since: Moment?

  @Option(
    parsing: .unconditional,
    help: ArgumentHelp(
      "The entries with these sequences: the first and the last, or one.", valueName: "a-b"),
    transform: UndoCommand.sequences)
  var range: ClosedRange<UInt64>?

  @Flag(name: .customLong("dry-run"), help: "Only list the keys that would change.")
  var isDryRun = false

  func validate() throws {
    if (since == nil) == (range == nil) { throw ValidationError("give --since or --range") }
  }

  private static func sequences(_ text: String) throws -> ClosedRange<UInt64> {
    let ends = text.split(separator: "-", omittingEmptySubsequences: false).map { UInt64($0) }
    guard let first = ends.first ?? nil, let last = ends.last ?? nil, ends.count <= 2,
      0 < first, first <= last, last < .max
    else { throw ValidationError("give two sequences from 1 on, such as 1001-1003, or one") }
    return first...last
  }

  func run(_ console: Console) throws {
    let access = StoreAccess(store, console)
    if isDryRun {
      return try access.read { try tell(try batch($0, console).operations, $0, console) }
    }
    let result = try write.commit(to: access, saying: "undone") { try batch($0, console) }
    if result.sequences.isEmpty, console.settings.format == .text { console.say("nothing to undo") }
  }

  /// A batch that takes back the entries that were asked for. The error for a part of a commit
  /// names all of it.
  private func batch(_ store: Store, _ console: Console) throws -> WriteBatch {
    do { return try wanted(store, console) } catch let error as TidemarkError {
      guard error.code == .invalidArgument, let commit = error.sequences else { throw error }
      let (first, last) = (commit.lowerBound, commit.upperBound)
      throw ToolError(
        .usage,
        "the entries \(first) to \(last) are one commit, which can only be undone as a whole: give "
          + "--since \(first - 1), or --range \(first)-\(last)")
    }
  }

  private func wanted(_ store: Store, _ console: Console) throws -> WriteBatch {
    if let since { return try store.undoBatch(since: since.sequence(in: store, console)) }
    guard let range else { return WriteBatch() }
    return try store.undoBatch(of: range.lowerBound..<range.upperBound + 1)
  }

  /// Lists what a batch would change.
  private func tell(_ batch: OperationBatch, _ store: Store, _ console: Console) throws {
    let printer = EntryPrinter(console: console, keys: keys.style)
    var list = try ListPrinter(console, "changes", empty: "nothing to undo")
    for operation in batch.operations {
      let key = [UInt8](copying: batch.key(of: operation))
      let isThere = try store.contains(key)
      let (name, sign) =
        operation.kind == .delete
        ? ("removed", console.paint("-", .red))
        : isThere
          ? ("changed", console.paint("~", .yellow)) : ("added", console.paint("+", .green))
      try list.add {
        .object([.bytes("key", key), .init("change", .string(name))])
      } text: { () throws(ToolError) in
        try printer.appendLine(key: key, before: [sign], after: [])
      }
    }
    try list.end()
  }
}
