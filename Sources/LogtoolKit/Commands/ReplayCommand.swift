internal import ArgumentParser
internal import TidemarkEngine

/// Brings one store's entries into another.
struct ReplayCommand: ToolCommand {
  static let configuration = CommandConfiguration(
    commandName: "replay",
    abstract: "Append a store's entries to another store, which is created when there is none.",
    discussion: """
      Examples:
        logtool replay S --to T               # everything that T does not have yet
        logtool replay S --to T --until 1000
        logtool replay S --to T --dry-run

      Entries go in the order of the source, deletes too, with key, value, labels, hash, own time
      and origin; they take the target's next sequences. A second run, also after a crash, sends
      only what is above the newest origin in the target; --from and --until narrow that.
      """)

  @OptionGroup var global: GlobalOptions

  @Argument(help: "The store to read.")
  var store: String

  @Option(name: .customLong("to"), help: "The store to append to.")
  var target: String

  @Option(
    name: .customLong("to-key-file"),
    help: ArgumentHelp(
      "The key of the target, or the word none; else it has that of the source.",
      valueName: "file"))
  var targetKeyFile: String?

  @Option(help: "Nothing before this sequence of the source.")
  var from: UInt64?

  @Option(help: "Nothing after this sequence of the source.")
  var until: UInt64?

  @Flag(name: .customLong("dry-run"), help: "Only say how much would be sent; create nothing.")
  var isDryRun = false

  func run(_ console: Console) throws {
    console.stopGracefully()
    let outcome = try withSource(console) { source in
      guard isDryRun else {
        return try targetAccess(console).write(creates: true) { target in
          try replay(source, to: target, console)
        }
      }
      do {
        return try targetAccess(console).read { try replay(source, to: $0, console) }
      } catch let error as TidemarkError where error.code == .storeMissing {
        return try replay(source, to: nil, console)
      }
    }
    try tell(outcome, console)
    if outcome.isInterrupted { throw ToolError.silent(.interrupted) }
  }

  private func targetAccess(_ console: Console) -> StoreAccess {
    StoreAccess(target, console, keyFiles: targetKeyFile.map { $0 == "none" ? [] : [$0] })
  }

  /// Opens the source for writing, so that it keeps a copy of the mark; if that cannot be, because
  /// its program is running or it may not be written, for reading.
  private func withSource(_ console: Console, _ body: (Engine) throws -> Outcome) throws -> Outcome
  {
    let access = StoreAccess(store, console)
    if isDryRun { return try access.read(body) }
    var hasBegun = false
    do {
      return try access.write { engine in
        hasBegun = true
        return try body(engine)
      }
    } catch let error as TidemarkError where !hasBegun {
      guard [.locked, .permissionDenied, .readOnly].contains(error.code) else { throw error }
      return try access.read(body)
    }
  }

  private struct Outcome {
    var sent = 0
    var echoes = 0
    var first: UInt64
    var last: UInt64
    /// The newest sequence of the source that the target had before.
    var mark: UInt64
    var targetSequence: UInt64?
    var isInterrupted = false
  }

  private func replay(
    _ source: Engine, to target: Engine?, _ console: Console
  ) throws -> Outcome {
    let (mark, copy) = try mark(source, target)
    // An origin is what a caller once gave, and may be the largest number there is.
    let first = max(mark == .max ? mark : mark + 1, from ?? 1)
    // What a power cut could still take from the source must not outlive it elsewhere.
    let last = min(until ?? .max, source.durableSequence)
    var replayer = Replayer(
      console, source: source, target: isDryRun ? nil : target, targetReplica: target?.replicaID)
    try replayer.send(from: first, through: last)
    if !isDryRun, let target {
      try target.flush()
      try keepCopy(of: mark, earlier: copy, source: source, target: target)
    }
    return Outcome(
      sent: replayer.sent, echoes: replayer.echoes, first: first, last: last, mark: mark,
      targetSequence: isDryRun ? nil : target?.lastSequence,
      isInterrupted: replayer.isInterrupted)
  }

  private func mark(
    _ source: Engine, _ target: Engine?
  ) throws -> (mark: UInt64, copy: ReplayMark?) {
    guard let target else { return (0, nil) }
    guard source.storeID != target.storeID else {
      throw ToolError(
        .failed, "source and target are the same store, or copies of it; give another target")
    }
    let found = try ReplayMark.find(source: source, target: target)
    let dropped = try source.bounds().droppedThrough
    guard found.mark == 0 || found.mark >= dropped else {
      throw ToolError(
        .failed,
        "a compaction of the source dropped deletes up to sequence \(dropped) that the target, "
          + "at \(found.mark), does not have yet; replay into a new store")
    }
    return found
  }

  /// Lets the source's log keep how far the target is now.
  private func keepCopy(
    of mark: UInt64, earlier: ReplayMark?, source: Engine, target: Engine
  ) throws {
    guard source.configuration.access != .readOnly else { return }
    let reached = try ReplayMark.find(source: source, target: target).mark
    guard reached > 0, reached != earlier?.sequence else { return }
    try ReplayMark(sequence: reached, target: target).record(
      in: source, targetID: target.storeID)
  }

  private func tell(_ outcome: Outcome, _ console: Console) throws(ToolError) {
    guard console.settings.format == .text else {
      let members: [JSONValue.Member] = [
        .init("sent", .integer(isDryRun ? 0 : outcome.sent)),
        .init("to_send", .integer(isDryRun ? outcome.sent : 0)),
        .init("echoes", .integer(outcome.echoes)),
        .init("mark_before", .unsigned(outcome.mark)),
        .init("from", .unsigned(outcome.first)),
        .init("until", .unsigned(outcome.last)),
        .init("target_sequence", outcome.targetSequence.map { .unsigned($0) } ?? .null),
      ]
      return try console.output.line(.object(members))
    }
    var text = outcome.isInterrupted ? "interrupted; " : ""
    text += isDryRun ? "would send " : "sent "
    text += HumanText.count(outcome.sent, "entry", "entries")
    if outcome.echoes > 0 {
      text +=
        "; left out \(HumanText.count(outcome.echoes, "entry", "entries")) that the target wrote"
    }
    if outcome.mark > 0 { text += "; it had everything up to sequence \(outcome.mark)" }
    if let sequence = outcome.targetSequence { text += "; the target is at sequence \(sequence)" }
    console.say(text)
  }
}
