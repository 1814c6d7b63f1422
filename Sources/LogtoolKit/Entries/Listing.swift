internal import Tidemark
internal import TidemarkEngine

/// Prints the keys of a view: what `scan` and `at` share.
struct Listing {
  let console: Console
  let options: ScanOptions
  /// The words for a person where there are no keys.
  var emptyWords = "no keys"
  /// Lists cached entries only, with what is known about them.
  var caches: CachedEntries?

  /// - Parameter view: the state that is listed.
  /// - Returns: how many keys were printed.
  func run(_ view: StoreView) throws -> Int {
    var list = try ListPrinter(console, "entries", empty: emptyWords)
    let (count, cursor) =
      if let caches {
        try printCached(view, caches, &list)
      } else if options.keysOnly {
        try printKeys(view, &list)
      } else {
        try printEntries(view, &list)
      }
    try end(list, count == options.limit ? cursor : nil, view)
    return count
  }

  private var printer: EntryPrinter {
    var printer = EntryPrinter(console: console, keys: options.keys.style)
    if options.endsWithNUL { printer.terminator = 0 }
    return printer
  }

  private func printEntries(
    _ view: StoreView, _ list: inout ListPrinter
  ) throws -> (count: Int, cursor: PageCursor?) {
    let printer = printer
    let query = try options.query()
    var rows = try view.entries(query, after: try options.cursor())
    var count = 0
    while count < options.limit ?? .max, let entry = try rows.next() {
      guard options.shows(entry.key, query) else { continue }
      try list.add {
        EntryPrinter.json(entry, values: options.values)
      } text: { () throws(ToolError) in
        try printer.appendLine(
          key: entry.key.bytes,
          after: options.values
            ? [entry.value]
            : [Array(String(entry.sequence).utf8), EntryPrinter.labels(entry)])
      }
      count += 1
    }
    return (count, rows.cursor)
  }

  private func printKeys(
    _ view: StoreView, _ list: inout ListPrinter
  ) throws -> (count: Int, cursor: PageCursor?) {
    let printer = printer
    let query = try options.query()
    var rows = try view.keys(query, after: try options.cursor())
    var count = 0
    while count < options.limit ?? .max, let key = try rows.next() {
      guard options.shows(key, query) else { continue }
      let sequence = rows.sequence
      try list.add {
        .object([.bytes("key", key.bytes), .init("sequence", .unsigned(sequence))])
      } text: { () throws(ToolError) in
        try printer.appendKey(key.bytes)
      }
      count += 1
    }
    return (count, rows.cursor)
  }

  /// Prints cached entries: whether a key is one shows only when it is looked at.
  private func printCached(
    _ view: StoreView, _ caches: CachedEntries, _ list: inout ListPrinter
  ) throws -> (count: Int, cursor: PageCursor?) {
    let (printer, output) = (printer, CacheOutput(console))
    let query = try options.query()
    var rows = try view.keys(query, after: try options.cursor())
    var count = 0
    while count < options.limit ?? .max, let key = try rows.next() {
      guard options.shows(key, query),
        let entry = try caches.entry(forKey: key.bytes)
      else { continue }
      try list.add {
        .object(
          [.bytes("key", key.bytes), .init("size", .integer(entry.value.count))]
            + output.members(entry))
      } text: { () throws(ToolError) in
        try printer.appendLine(key: key.bytes, after: output.fields(entry))
      }
      count += 1
    }
    return (count, rows.cursor)
  }

  /// - Parameter cursor: how to go on where a limit has cut the list.
  private func end(
    _ list: ListPrinter, _ cursor: PageCursor?, _ view: StoreView
  ) throws(ToolError) {
    let cursor = cursor.map(\.description)
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
