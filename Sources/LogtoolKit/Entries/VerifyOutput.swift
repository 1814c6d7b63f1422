internal import TidemarkEngine

/// Prints what a verification has found.
struct VerifyOutput {
  let console: Console
  let report: VerifyReport
  /// Whether each finding comes with what it means and the command that mends it.
  let explains: Bool

  /// Prints the findings.
  /// - Throws: the status for findings, when there are any.
  func print() throws(ToolError) {
    var list = try ListPrinter(console, "findings", empty: "")
    for finding in report.findings {
      try list.add {
        json(finding)
      } text: { () throws(ToolError) in
        for line in text(finding) { try console.output.line(console.prose(line)) }
      }
    }
    try list.end(summary, summarizes: true)
    console.say(words)
    if !report.isHealthy { throw .silent(.findings) }
  }

  private func text(_ finding: VerifyFinding) -> [String] {
    var place = "\(finding.file), offset \(finding.offset)"
    if let sequences = finding.sequences { place += ", \(Self.text(sequences))" }
    var lines = [console.paint(place + ":", .red) + " \(finding.message)"]
    guard explains else { return lines }
    lines.append(
      finding.isDamageToAcknowledged
        ? "  Entries are lost here. Everything else can be read; what needs them fails to read, and"
          + " the store opens for reading only."
        : "  Nothing is lost: what is damaged can be made anew from the rest.")
    lines.append("  To mend it: \(finding.remedy)")
    return lines
  }

  private static func text(_ sequences: ClosedRange<UInt64>) -> String {
    sequences.count == 1
      ? "sequence \(sequences.lowerBound)"
      : "sequences \(sequences.lowerBound) to \(sequences.upperBound)"
  }

  private func json(_ finding: VerifyFinding) -> JSONValue {
    var members: [JSONValue.Member] = [
      .init("file", .string(finding.file)), .init("offset", .integer(finding.offset)),
      .init("length", .integer(finding.length)),
      .init("first_sequence", finding.sequences.map { .unsigned($0.lowerBound) } ?? .null),
      .init("last_sequence", finding.sequences.map { .unsigned($0.upperBound) } ?? .null),
      .init("message", .string(finding.message)),
      .init("loses_entries", .bool(finding.isDamageToAcknowledged)),
    ]
    if explains { members.append(.init("remedy", .string(finding.remedy))) }
    return .object(members)
  }

  private var summary: [JSONValue.Member] {
    [
      .init("healthy", .bool(report.isHealthy)),
      .init("segments", .integer(report.segments)),
      .init("entries", .integer(report.entries)),
      .init("index_runs", .integer(report.runs)),
      .init("bytes", .integer(report.bytes)),
      .init("attachments", .integer(report.attachments)),
      .init("attachment_bytes", .integer(report.attachmentBytes)),
      .init("last_sequence", .unsigned(report.lastSequence)),
      .init(
        "holes",
        .array(
          report.holes.map { .array([.unsigned($0.lowerBound), .unsigned($0.upperBound)]) })),
      .init("leftovers", .array(report.leftovers.map { .string($0) })),
      .init("recorded", .bool(report.isRecorded)),
      .init("checksums_only", .bool(report.isOpaque)),
    ]
  }

  private var words: String {
    var text =
      report.isHealthy
      ? "nothing wrong" : HumanText.count(report.findings.count, "finding", "findings")
    text += " in \(HumanText.count(report.segments, "segment", "segments")) with "
    text += HumanText.count(report.entries, "intact entry", "intact entries")
    text += " and \(HumanText.count(report.runs, "index run", "index runs"))"
    text += ", \(HumanText.size(report.bytes))"
    if report.attachments > 0 {
      text += "; \(HumanText.count(report.attachments, "attachment", "attachments"))"
      text += ", \(HumanText.size(report.attachmentBytes))"
    }
    if report.isOpaque { text += "; encrypted, and without the key only checksums were checked" }
    if report.isRecorded {
      text += "; the damage is on record, and the store opens for reading only"
    }
    for hole in report.holes { text += "; \(Self.text(hole)) were given up by a repair" }
    if !report.leftovers.isEmpty {
      text +=
        "; \(HumanText.count(report.leftovers.count, "file", "files")) left behind, which "
        + "the next opening for writing clears away"
    }
    return text
  }
}
