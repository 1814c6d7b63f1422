internal import ArgumentParser
internal import SyncServerKit

private let defaults = CompactionSettings()

/// The options of history and compaction.
struct KeepingOptions: ParsableArguments {
  @Option(0...36_500, "days", "Days for which versions are kept that newer ones have replaced.")
  var keepHistoryDays = defaults.history.seconds / 86_400
  @Option(0...86_400, "seconds", "Seconds between two looks whether to compact; 0 for never.")
  var compactInterval = defaults.interval.seconds
  @Option(1...1 << 40, "bytes", "Compact a database if that frees about as many bytes.")
  var compactBytes = defaults.leastBytes
  @Option(1...99, "percent", "And if that is as much of it, in percent.")
  var compactPercent = defaults.leastPercent

  func apply(to settings: inout CompactionSettings) {
    settings.history = .seconds(keepHistoryDays * 86_400)
    settings.interval = .seconds(compactInterval)
    settings.leastBytes = compactBytes
    settings.leastPercent = compactPercent
  }
}
