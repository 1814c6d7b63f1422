internal import TidemarkEngine

extension SyncHandler {
  /// Most keys that an answer tells one by one, which more than ``DigestTable/keysPerPart`` come to
  /// only when the hashes of their keys are all the same.
  private static let mostKeys = 65_536

  /// Answers with sums over a part of what the feed's keys hold now.
  ///
  /// The first question after a change reads all values of the scope; the next ones are answered
  /// from memory.
  /// - Throws: ``PeerError``.
  public func digest(
    _ request: DigestRequest, access: SyncAccess = .everything
  ) throws(PeerError) -> DigestAnswer {
    try answering {
      guard request.path.count <= DigestTable.pathBytes else {
        throw PeerError(
          .malformed, "a part has at most \(DigestTable.pathBytes) bytes of a key's hash")
      }
      let name = DigestCache.Name(
        scope: request.scope, reach: access.scope, path: request.path)
      let (table, head) = try digests.withLock { (cache: inout DigestCache) throws(TidemarkError) in
        try self.table(name, access, &cache)
      }
      let (total, part) = table.part(request.path)
      let range = try range(for: request.replica)
      var answer = DigestAnswer(
        position: range.position(ofOffset: head), range: range, total: total, parts: .keys([]))
      switch part {
      case .sums(let sums): answer.parts = .sums(sums)
      case .rows(let rows):
        guard rows.count <= Self.mostKeys else {
          throw PeerError(.failed, "too many keys have the same hash")
        }
        var keys: [DigestKey] = []
        for row in rows { keys.append(try key(row, range)) }
        answer.parts = .keys(keys)
      }
      return answer
    }
  }

  /// A table that can tell of a part of what the feed holds now.
  private func table(
    _ name: DigestCache.Name, _ access: SyncAccess, _ cache: inout DigestCache
  ) throws(TidemarkError) -> (DigestTable, UInt64) {
    if let (table, head) = cache.find(name) {
      if let now = try unchangedHead(since: head) {
        cache.extend(to: now)
        return (table, now)
      }
      cache.removeLast()
    }
    var table = DigestTable(path: name.path)
    let head = try feed.scan(
      wants: { table.covers(hash: ContentFingerprint.keyHash($0.rawSpan)) }
    ) { (found, value) throws(TidemarkError) in
      guard name.scope.contains(key: found.key, labels: found.labels),
        access.reaches(key: found.key, labels: found.labels)
      else { return }
      table.add(
        DigestTable.Row(
          hash: ContentFingerprint.keyHash(found.key.rawSpan),
          fingerprint: ContentFingerprint(
            key: found.key.rawSpan, value: value, labels: found.labels),
          offset: found.offset))
    }
    table.finish()
    cache.insert(name, head: head, table)
    return (table, head)
  }

  /// Where the feed ends, if nothing but records has come behind an offset; else nil.
  private func unchangedHead(since head: UInt64) throws(TidemarkError) -> UInt64? {
    let end = try feed.settledRange().head
    var offset = head
    while offset < end {
      let found = try feed.heads(after: offset, through: end, limit: 1)
      guard found.heads.isEmpty else { return nil }
      offset = found.through
    }
    return end
  }

  private func key(
    _ row: DigestTable.Row, _ range: FeedRange
  ) throws -> DigestKey {
    guard let key = try feed.key(at: row.offset) else {
      throw PeerError(.busy, "the feed is being compacted", retryAfterSeconds: 1)
    }
    return DigestKey(
      key: key, position: range.position(ofOffset: row.offset), low: row.fingerprint.low,
      high: row.fingerprint.high)
  }
}
