internal import Tidemark
internal import TidemarkEngine

/// Prints one value: its bytes and nothing else, or the entry as JSON.
enum ValueOutput {
  static func write(_ entry: Entry, to console: Console) throws(ToolError) {
    guard console.settings.format == .text else {
      return try console.output.line(EntryPrinter.json(entry, values: true))
    }
    guard console.output.isTerminal else { return try console.output.write(entry.value.rawSpan) }
    try console.output.line(HumanText.escapedKeepingLines(entry.value))
  }
}
