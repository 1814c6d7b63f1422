internal import TidemarkEngine
internal import TidemarkSyncProtocol

extension SyncHandler {
  /// Most keys that an answer lists. A part lists more than ``DigestTable/keysPerPart`` only if the
  /// hashes of all its keys are equal.
  private static let mostKeys = 65_536

  /// About how many bytes an answer may have before further parts are left out.
  private static let answerBytes = 256 << 10

  /// Answers with digests: sums of hashes over parts of the keys and what they hold now. A client
  /// compares them with its own to find the keys that differ.
  ///
  /// The first call after a change reads all values of the scope; the next ones use memory.
  /// - Throws: ``PeerError``.
  public func digest(
    _ request: DigestRequest, access: SyncAccess = .everything
  ) throws(PeerError) -> DigestAnswer {
    try settled(\.range) { try stageDigest(request, access) }
  }

  func stageDigest(_ request: DigestRequest, _ access: SyncAccess) throws -> DigestAnswer {
    // A caller in this process may pass a request that no decoder has checked.
    try WireMessage.digestRequest(request).check(normalizes: true)
    guard request.paths.allSatisfy({ $0.count <= DigestTable.pathBytes }) else {
      throw PeerError(
        .malformed, "a part has at most \(DigestTable.pathBytes) bytes of a key's hash")
    }
    let name = DigestCache.Name(scope: request.scope, reach: access.scope)
    let ((head, parts), end) = try reading(FeedQuestion(of: request.replica)) { view in
      let row = try digests.withLock { (cache: inout DigestCache) throws(TidemarkError) in
        try gathered(name, request.paths, access, view, &cache)
      }
      return (row.head, try self.parts(request.paths, of: row.table, view.range))
    }
    let range = range(end)
    return DigestAnswer(
      position: range.position(ofOffset: head), range: range, parts: parts, reach: access.reach)
  }

  private func parts(
    _ paths: [[UInt8]], of table: DigestTable, _ range: FeedRange
  ) throws -> [DigestPart] {
    var parts: [DigestPart] = []
    var bytes = 0
    var keys = 0
    for path in paths {
      guard table.answers(path) else { break }
      let part = try part(path, of: table, range)
      bytes += part.size
      if case .keys(let found) = part.content { keys += found.count }
      let isTooMuch = bytes > Self.answerBytes || keys > Self.mostKeys
      if isTooMuch, !parts.isEmpty { break }
      parts.append(part)
    }
    return parts
  }

  private func part(
    _ path: [UInt8], of table: DigestTable, _ range: FeedRange
  ) throws -> DigestPart {
    try table.part(path) { rows in
      guard rows.count <= Self.mostKeys else {
        throw PeerError(.failed, "too many keys have the same hash")
      }
      let heads = try feed.heads(at: rows.map(\.offset))
      return try rows.map { row in
        guard let head = heads[row.offset] else {
          throw PeerError(.busy, "the feed is being compacted", retryAfter: .seconds(1))
        }
        return (head.key, range.position(ofOffset: row.offset))
      }
    }
  }

  /// A table of what the feed holds now that can answer at least the first of some paths.
  private func gathered(
    _ name: DigestCache.Name, _ paths: [[UInt8]], _ access: SyncAccess, _ view: FeedView,
    _ cache: inout DigestCache
  ) throws(TidemarkError) -> DigestCache.Row {
    if var row = cache.take(name, paths[0]), try isUnchanged(since: row, view) {
      row.head = view.range.head
      cache.insert(row)
      return row
    }
    var table = DigestTable(paths: paths)
    let head = try feed.scan(into: &table) { key, labels in
      name.scope.contains(key: key, labels: labels) && access.reaches(key: key, labels: labels)
    }
    table.finish()
    let row = DigestCache.Row(
      name: name, incarnation: view.incarnation, epoch: view.epoch, head: head, table: table)
    cache.insert(row)
    return row
  }

  /// Whether the feed has no entries from after a table was gathered, only records.
  private func isUnchanged(
    since row: DigestCache.Row, _ view: FeedView
  ) throws(TidemarkError) -> Bool {
    // In another epoch the same offsets may be of other entries. A tombstone that was appended and
    // dropped since would not be found below.
    let isOfEpoch =
      row.incarnation == view.incarnation && row.epoch == view.epoch && row.head <= view.range.head
    guard isOfEpoch || PlantedSyncBug.isOn(.digestsOverEpochs),
      view.range.truncatedThrough <= row.head
    else { return false }
    var offset = row.head
    while offset < view.range.head {
      let found = try feed.read(FeedQuery(after: offset, through: view.range.head, limit: 1))
      // A feed that has lost its end since the view has nothing to read on.
      guard found.rows.isEmpty, found.through > offset else { return false }
      offset = found.through
    }
    return true
  }
}

extension DigestPart {
  /// About how many bytes it needs in a message.
  fileprivate var size: Int {
    switch content {
    case .sums(let sums): sums.reduce(32) { $0 + ($1.keys > 0 ? 24 : 4) }
    case .keys(let keys): keys.reduce(32) { $0 + 32 + $1.key.count }
    }
  }
}

/// The tables of recent digests: a comparison asks several times, and each table costs a scan.
struct DigestCache: Sendable {
  struct Name: Hashable {
    var scope: SyncScope
    var reach: SyncScope?
  }

  struct Row {
    var name: Name
    var incarnation: UInt64
    var epoch: UInt64
    /// The offset of the feed as of which the table is correct.
    var head: UInt64
    var table: DigestTable
  }

  /// Most tables, and most rows of all of them together.
  private static let tables = 8
  private static let rowsOfAll = 2 * DigestTable.rowLimit

  /// The most recently used is the last.
  private var rows: [Row] = []

  /// Removes and returns a table that can answer a path.
  mutating func take(_ name: Name, _ path: [UInt8]) -> Row? {
    let index = rows.lastIndex { $0.name == name && $0.table.answers(path) }
    return index.map { rows.remove(at: $0) }
  }

  /// Keeps a table, and evicts the least recently used ones.
  mutating func insert(_ row: Row) {
    rows.append(row)
    while rows.count > Self.tables
      || (rows.count > 1 && rows.reduce(0) { $0 + $1.table.rowCount } > Self.rowsOfAll)
    {
      rows.removeFirst()
    }
  }
}
