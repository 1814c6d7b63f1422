internal import TidemarkEngine

/// Prints the keys of a view: what `scan` and `at` share.
struct Listing {
  private static let keysPerPage = 1024
  let console: Console
  let options: ScanOptions
  /// The words for a person where there are no keys.
  var emptyWords = "no keys"

  /// - Parameter view: the state that is listed.
  /// - Returns: how many keys were printed.
  func run(_ engine: Engine, in view: EngineView) throws -> Int {
    let scan = EngineScan(
      engine, try options.query(), view: view, after: try options.position())
    var printer = EntryPrinter(console: console, keys: options.keys.style)
    if options.endsWithNUL { printer.terminator = 0 }
    var list = try ListPrinter(console, "entries", empty: emptyWords)
    let loader = EntryLoader(engine)
    let pageSize = options.keysOnly ? Self.keysPerPage : EntryLoader.rows
    var left = options.limit ?? Int.max
    var count = 0
    while left > 0 {
      let rows = try scan.nextPage(limit: min(left, pageSize))
      if rows.isEmpty { break }
      left -= rows.count
      count += rows.count
      if options.keysOnly {
        for row in rows { try add(row, printer, &list) }
      } else {
        try loader.load(rows, values: options.values) { try add($0, printer, &list) }
      }
    }
    try end(list, scan, isCut: left == 0, view)
    return count
  }

  private func add(
    _ row: ScanRow, _ printer: EntryPrinter, _ list: inout ListPrinter
  ) throws(ToolError) {
    try list.add {
      .object([.bytes("key", row.key), .init("sequence", .unsigned(row.sequence))])
    } text: { () throws(ToolError) in
      try printer.appendKey(row.key)
    }
  }

  private func add(
    _ entry: LoadedEntry, _ printer: EntryPrinter, _ list: inout ListPrinter
  ) throws(ToolError) {
    try list.add {
      EntryPrinter.json(entry, values: options.values)
    } text: { () throws(ToolError) in
      try printer.appendLine(
        key: entry.key,
        after: options.values
          ? [entry.value]
          : [Array(String(entry.info.sequence).utf8), EntryPrinter.labels(entry.info)])
    }
  }

  /// A scan that a limit has cut says how to go on.
  private func end(
    _ list: ListPrinter, _ scan: EngineScan, isCut: Bool, _ view: EngineView
  ) throws(ToolError) {
    let cursor = isCut ? scan.position.cursor : nil
    try list.end([
      .init("at", .unsigned(view.sequence)), .init("cursor", .optional(cursor)),
    ])
    guard let cursor else { return }
    switch console.settings.format {
    case .text: console.say("there may be more: --after \(cursor)")
    case .json: break
    case .jsonl:
      try console.output.line(.object([.init("cursor", .string(cursor))]))
    }
  }
}
