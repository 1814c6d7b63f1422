internal import Tidemark
internal import TidemarkEngine

/// Prints caches and their entries.
struct CacheOutput {
  private let console: Console
  private let keys: KeyStyle
  private let now: Timestamp

  init(_ console: Console, _ keys: KeyStyle = KeyStyle()) {
    self.console = console
    self.keys = keys
    now = console.clock.now()
  }

  // MARK: Caches

  func print(_ caches: [KnownCache]) throws(ToolError) {
    var list = try ListPrinter(console, "caches")
    for cache in caches {
      try list.add {
        Self.json(cache)
      } text: { () throws(ToolError) in
        for line in lines(cache) { try console.output.line(line) }
      }
    }
    try list.end()
  }

  private func lines(_ cache: KnownCache) -> [String] {
    let (status, policy, counts) = (cache.status, cache.status.policy, cache.status.counts)
    var fill = HumanText.count(status.entries, "entry", "entries")
    if let most = policy.capacity { fill += " of \(HumanText.count(most))" }
    fill += ", \(HumanText.size(status.bytes))"
    if let most = policy.bytes { fill += " of \(HumanText.size(most))" }
    var rules = "valid for \(Self.text(policy.maxAge))"
    if let longest = policy.maxStale { rules += ", kept stale for \(Self.text(longest))" }
    var reads =
      "\(HumanText.count(counts.hits)) valid, \(HumanText.count(counts.staleHits)) stale, "
    reads += "\(HumanText.count(counts.misses)) missing"
    if let ratio = counts.hitRatio { reads += ", \(Int(ratio * 100)) % hits" }
    var lines = [
      HumanText.escaped(cache.prefix.bytes), "  holds: " + fill, "  rules: " + rules,
      "  reads: " + reads,
      "  gone: \(HumanText.count(counts.evictions)) to make room, "
        + "\(HumanText.count(counts.expired)) stale for too long",
      "  sources: \(HumanText.count(counts.fetches, "request", "requests")), "
        + "\(HumanText.count(counts.requestsAvoided)) avoided, "
        + "\(HumanText.size(counts.bytesSaved)) not sent again",
    ]
    if let oldest = status.leastRecentUse { lines.append("  oldest use: " + oldest.text) }
    return lines
  }

  private static func text(_ duration: Duration) -> String {
    HumanText.duration(seconds: duration / .seconds(1))
  }

  private static func json(_ cache: KnownCache) -> JSONValue {
    let (status, policy, counts) = (cache.status, cache.status.policy, cache.status.counts)
    return .object([
      .bytes("prefix", cache.prefix.bytes), .init("entries", .integer(status.entries)),
      .init("bytes", .integer(status.bytes)),
      .init("capacity", policy.capacity.map { .integer($0) } ?? .null),
      .init("capacity_bytes", policy.bytes.map { .integer($0) } ?? .null),
      .init("max_age", .integer(Int(clamping: policy.maxAge.components.seconds))),
      .init(
        "max_stale",
        policy.maxStale.map { .integer(Int(clamping: $0.components.seconds)) } ?? .null),
      .init("hits", .integer(counts.hits)), .init("stale_hits", .integer(counts.staleHits)),
      .init("misses", .integer(counts.misses)), .init("evictions", .integer(counts.evictions)),
      .init("expired", .integer(counts.expired)), .init("fetches", .integer(counts.fetches)),
      .init("requests_avoided", .integer(counts.requestsAvoided)),
      .init("bytes_saved", .integer(counts.bytesSaved)),
      .init("oldest_use", .optional(status.leastRecentUse?.text)),
    ])
  }

  // MARK: Entries

  func print(_ entries: [CachedEntry<[UInt8]>]) throws(ToolError) {
    let printer = EntryPrinter(console: console, keys: keys)
    var list = try ListPrinter(console, "entries", empty: "no entries")
    for entry in entries {
      try list.add {
        .object(
          [.bytes("key", entry.key.bytes), .init("size", .integer(entry.value.count))]
            + members(entry))
      } text: { () throws(ToolError) in
        try printer.appendLine(key: entry.key.bytes, after: fields(entry))
      }
    }
    try list.end()
  }

  /// Freshness, age in seconds, number of reads and time of the last one.
  func fields(_ entry: CachedEntry<[UInt8]>) -> [[UInt8]] {
    [
      entry.isValid ? "valid" : "stale", "\(age(entry))", "\(entry.uses)",
      entry.lastUse?.text ?? "-",
    ].map { Array($0.utf8) }
  }

  func members(_ entry: CachedEntry<[UInt8]>) -> [JSONValue.Member] {
    [
      .init("valid", .bool(entry.isValid)),
      .init("valid_until", .optional(entry.validUntil?.text)),
      .init("age", .integer(age(entry))), .init("uses", .integer(entry.uses)),
      .init("last_use", .optional(entry.lastUse?.text)),
    ]
  }

  /// Seconds since it was last known to be right.
  private func age(_ entry: CachedEntry<[UInt8]>) -> Int {
    Int(clamping: max(0, (now.milliseconds - entry.validated.milliseconds) / 1_000))
  }
}
