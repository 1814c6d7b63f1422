internal import ArgumentParser
internal import SyncServerKit

/// The options of history and compaction.
struct KeepingOptions: ParsableArguments {
  @Option(
    help: ArgumentHelp(
      "Days for which versions are kept that newer ones have replaced. (default: 7)",
      valueName: "days"))
  var keepHistoryDays: Int?
  @Option(
    help: ArgumentHelp(
      "Seconds between two looks whether to compact; 0 for never. (default: 60)",
      valueName: "seconds"))
  var compactInterval: Int?
  @Option(
    help: ArgumentHelp(
      "Compact a database if that frees about as many bytes. (default: 8388608)",
      valueName: "bytes"))
  var compactBytes: Int?
  @Option(
    help: ArgumentHelp(
      "And if that is as much of it, in percent. (default: 30)", valueName: "percent"))
  var compactPercent: Int?

  func apply(to options: inout ServerOptions) throws {
    func number(
      _ option: Int?, _ flag: String, _ name: String, _ range: ClosedRange<Int>
    ) throws -> Int? {
      guard let value = try option ?? Setting.number(name) else { return nil }
      guard range.contains(value) else {
        throw ValidationError("\(flag) has to be \(range.lowerBound) to \(range.upperBound)")
      }
      return value
    }
    var settings = options.compaction
    if let days = try number(
      keepHistoryDays, "--keep-history-days", "KEEP_HISTORY_DAYS", 0...36_500)
    {
      settings.history = .seconds(days * 86_400)
    }
    if let seconds = try number(
      compactInterval, "--compact-interval", "COMPACT_INTERVAL", 0...86_400)
    {
      settings.interval = .seconds(seconds)
    }
    if let bytes = try number(compactBytes, "--compact-bytes", "COMPACT_BYTES", 1...1 << 40) {
      settings.leastBytes = bytes
    }
    if let percent = try number(
      compactPercent, "--compact-percent", "COMPACT_PERCENT", 1...99)
    {
      settings.leastPercent = percent
    }
    options.compaction = settings
  }
}
