internal import ArgumentParser
internal import TidemarkEngine

/// Brings what can be read of a damaged store into a new one.
struct RepairCommand: ToolCommand {
  static let configuration = CommandConfiguration(
    commandName: "repair",
    abstract: "Bring everything that can still be read into a new store.",
    discussion: """
      Example:
        logtool repair S --into T

      S is only read. T gets every entry that is whole, with its sequence, times, labels and \
      history; what is lost is listed here and put on record in T. Exit status 2 when something \
      was lost.
      """)

  @OptionGroup var global: GlobalOptions

  @Argument(help: "The damaged store's directory.", completion: .directory)
  var store: String

  @Option(help: "The new store's directory, which is created.", completion: .directory)
  var into: String

  func run(_ console: Console) throws {
    let report = try StoreAccess(store, console).repair(into: into)
    if console.settings.format == .text {
      try say(report, console)
    } else {
      try console.output.line(Self.json(report))
    }
    if !report.isComplete { throw ToolError.silent(.findings) }
  }

  private func say(_ report: RepairReport, _ console: Console) throws {
    for note in report.notes { console.say(note) }
    for loss in report.losses {
      var line = "lost in \(loss.file) at offset \(loss.offset): \(loss.reason)"
      if let sequences = loss.sequences {
        line += ", sequences \(sequences.lowerBound) to \(sequences.upperBound)"
      }
      try console.output.line(line)
      for key in loss.keys { try console.output.line("  " + HumanText.escaped(key)) }
      if loss.keyCount > loss.keys.count {
        try console.output.line("  and \(loss.keyCount - loss.keys.count) more keys")
      }
    }
    let lost = report.lostSequences.reduce(0) { $0 + $1.count }
    if lost > 0 { console.say("\(HumanText.count(lost, "sequence", "sequences")) lost in all") }
    console.say(
      "\(HumanText.count(report.entries)) entries are in \(into), up to sequence "
        + "\(report.lastSequence)")
  }

  private static func json(_ report: RepairReport) -> JSONValue {
    let losses = report.losses.map { loss -> JSONValue in
      .object([
        .init("file", .string(loss.file)), .init("offset", .integer(loss.offset)),
        .init("first_sequence", loss.sequences.map { .unsigned($0.lowerBound) } ?? .null),
        .init("last_sequence", loss.sequences.map { .unsigned($0.upperBound) } ?? .null),
        .init("reason", .string(loss.reason)), .init("keys", .integer(loss.keyCount)),
      ])
    }
    return .object([
      .init("entries", .integer(report.entries)),
      .init("sequence", .unsigned(report.lastSequence)), .init("losses", .array(losses)),
      .init(
        "lost",
        .array(
          report.lostSequences.map {
            .array([.unsigned($0.lowerBound), .unsigned($0.upperBound)])
          })),
      .init("notes", .array(report.notes.map { .string($0) })),
    ])
  }
}
