internal import Tidemark
internal import TidemarkEngine

/// Prints the keys of a view: what `scan` and `at` share.
struct Listing {
  private static let keysPerPage = 1024
  let console: Console
  let options: ScanOptions
  /// The words for a person where there are no keys.
  var emptyWords = "no keys"
  /// Lists cached entries only, with what is known about them.
  var caches: CachedEntries?

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
      let rows = try scan.nextPage(upTo: min(left, pageSize))
      if rows.isEmpty { break }
      if let caches {
        for row in rows where left > 0 {
          guard let entry = try caches.entry(forKey: row.key) else { continue }
          try add(entry, row.key, printer, &list)
          left -= 1
          count += 1
        }
        continue
      }
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
    _ entry: CachedEntry<[UInt8]>, _ key: [UInt8], _ printer: EntryPrinter,
    _ list: inout ListPrinter
  ) throws(ToolError) {
    let output = CacheOutput(console)
    try list.add {
      .object(
        [.bytes("key", key), .init("size", .integer(entry.value.count))] + output.members(entry))
    } text: { () throws(ToolError) in
      try printer.appendLine(key: key, after: output.fields(entry))
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

/// Looks up what is known about cached entries.
struct CachedEntries {
  private let caches: [Cache<[UInt8]>]
  private let others: Cache<[UInt8]>

  init(_ store: Store) throws(TidemarkError) {
    var caches: [Cache<[UInt8]>] = []
    for known in try store.knownCaches() {
      let cache = try store.cache(prefix: known.prefix, policy: known.status.policy)
      // The order of use is read from beside the log once.
      _ = try cache.status
      caches.append(cache)
    }
    self.caches = caches
    others = store.cacheOfEverything()
  }

  /// - Returns: nil where the key has no cached value.
  func entry(forKey key: [UInt8]) throws(TidemarkError) -> CachedEntry<[UInt8]>? {
    let cache =
      caches.first { key.starts(with: $0.prefix.bytes) && key.count > $0.prefix.bytes.count }
      ?? others
    let entry = try cache.peek(Key(Array(key.dropFirst(cache.prefix.bytes.count))))
    return entry.flatMap { $0.isOwned ? nil : $0 }
  }
}
