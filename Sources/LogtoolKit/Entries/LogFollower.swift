internal import Tidemark
internal import TidemarkEngine

/// Prints the entries of a log in their order, also those that another process goes on writing.
struct LogFollower {
  private static let shortestPauseMilliseconds = 200

  struct Options {
    var prefix: [UInt8]
    var library: LibraryKeyOptions
    var values: Bool
    var keys: KeyStyle
  }

  private let console: Console
  private let engine: Engine
  private let options: Options
  private let printer: EntryPrinter
  private var list: ListPrinter
  /// The last sequence that was looked at, and the epoch that it belongs to.
  private var position: UInt64
  private var epoch: UInt64?
  private var pauseMilliseconds = shortestPauseMilliseconds

  init(
    _ console: Console, _ store: Store, after position: UInt64, _ options: Options
  ) throws {
    self.console = console
    engine = store.engine
    self.options = options
    self.position = position
    printer = EntryPrinter(console: console, keys: options.keys)
    list = try ListPrinter(console, "entries")
    epoch = try epochOfPosition()
  }

  /// Prints what is there and was not printed.
  mutating func printNew() throws {
    let last = engine.reader.lastSequence
    guard last > position else { return }
    var cursor = LogCursor(engine.reader, from: position + 1, through: last)
    while let entry = try cursor.next() {
      let (key, prefix) = (entry.key, options.prefix)
      guard key.starts(with: prefix), options.library.shows(key, prefix: prefix) else { continue }
      try print(entry)
    }
    position = last
    epoch = try epochOfPosition()
  }

  /// Sleeps a little, then takes up what was written meanwhile.
  mutating func waitForMore() throws {
    // Looking costs more on a store with much that no sorted run covers; then look less often.
    SystemCalls.sleep(milliseconds: pauseMilliseconds)
    guard !console.isInterrupted() else { return }
    let clock = console.clock
    let before = clock.monotonicNanoseconds()
    try engine.refresh()
    let cost = Int((clock.monotonicNanoseconds() - before) / 1_000_000)
    pauseMilliseconds = max(Self.shortestPauseMilliseconds, min(cost * 10, 5000))
    try checkEpoch()
  }

  /// The epoch that the position was given out in; nil when the store has none that old.
  private func epochOfPosition() throws(TidemarkError) -> UInt64? {
    let epoch = try engine.reader.bounds().epoch(of: max(position, 1))
    return epoch == 0 ? nil : epoch
  }

  /// Sequences that a crash took back are given out again, in another epoch.
  private mutating func checkEpoch() throws {
    let now = try epochOfPosition()
    guard let epoch, now != epoch || engine.reader.lastSequence < position else { return }
    let start = try engine.reader.bounds().lastSequence(before: epoch)
    console.warn(
      "the store lost its newest entries in a crash; going on behind sequence \(start)")
    position = start
    self.epoch = try epochOfPosition()
  }

  /// Ends the list.
  func end() throws(ToolError) { try list.end() }

  private mutating func print(_ logEntry: LogEntry) throws {
    let info = try engine.reader.info(logEntry)
    let entry = Entry(
      key: logEntry.key, value: options.values ? try engine.value(of: info) : [], info: info,
      created: nil)
    let printer = printer
    let options = options
    try list.add {
      EntryPrinter.json(entry, namesOperation: true, values: options.values)
    } text: { () throws(ToolError) in
      let time = entry.time ?? entry.committed
      var after: [[UInt8]] = entry.kind.removes ? [] : [EntryPrinter.labels(entry)]
      if options.values, !entry.kind.removes { after.append(entry.value) }
      try printer.appendLine(
        key: entry.key.bytes, before: [String(entry.sequence), time.text, entry.kind.name],
        after: after)
    }
  }
}

extension LogBounds {
  /// The last sequence that an epoch and those before it are sure of.
  fileprivate func lastSequence(before epoch: UInt64) -> UInt64 {
    guard let index = epochs.firstIndex(where: { $0.epoch == epoch }) else { return 0 }
    guard index + 1 < epochs.count else { return visible }
    return min(epochs[index + 1].firstSequence - 1, visible)
  }
}
