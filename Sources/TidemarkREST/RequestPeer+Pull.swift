internal import Tidemark
internal import TidemarkEngine
internal import TidemarkSyncProtocol

extension RequestPeer {
  /// Asks for what has changed behind a cursor; where there is nothing, again and again for as long
  /// as asked.
  public func pull(_ request: PullRequest) async throws -> PullAnswer {
    let deadline = ContinuousClock.now + .milliseconds(Int64(request.waitMilliseconds))
    while true {
      let answer = try await page(request)
      let left = deadline - .now
      guard answer.entries.isEmpty, answer.cursor.offset >= answer.range.head, left > .zero else {
        return answer
      }
      try await Task.sleep(for: min(left, options.pollInterval))
    }
  }

  private func page(_ request: PullRequest) async throws -> PullAnswer {
    let after = request.after.offset
    let (token, isKnown) = try state.withLock { (memory: inout RequestMemory) throws in
      try memory.checkOpen()
      guard after <= memory.head else {
        throw PeerError(.cursorGone, "the cursor was not given out")
      }
      return (memory.token(at: after), memory.hasWindow(for: request))
    }
    if let fetch, !isKnown {
      let page = try await ask { try await fetch(token) }
      let keyed = try self.keyed(page, request.aliases, request.replica)
      state.withLock { $0.take(page, keyed, for: request, places) }
    }
    return state.withLock { $0.answer(request, places) }
  }

  /// Says what keys hold: what a conflict has told, or what the back end says when asked.
  public func values(_ request: ValuesRequest) async throws -> ValuesAnswer {
    let keys = Array(request.keys.prefix(options.changesPerBatch))
    var found = try state.withLock { (memory: inout RequestMemory) throws in
      try memory.checkOpen()
      return memory.current
    }
    if read == nil, keys.contains(where: { found[$0] == nil }) {
      for (key, state) in try await everything(of: Set(keys), request) {
        found[key] = state
      }
    }
    var entries: [FeedEntry] = []
    for key in keys {
      var state = found[key]
      if state == nil, let read {
        let alias = request.aliases?.alias(ofKey: key)
        state = try await ask { try await read(Key(key), alias) }
      }
      guard state != nil || read != nil || fetch != nil else {
        // It was told with a conflict, before the program was started anew.
        throw PeerError(
          .failed,
          "what the back end has at \(Key(key)) is not known any more; give the peer `read` or "
            + "`fetch`")
      }
      entries.append(self.entry(key, state ?? .absent))
    }
    return state.withLock { memory in
      memory.tell(keys)
      return ValuesAnswer(
        entries: entries, answered: keys.count, range: places.range(head: memory.head))
    }
  }

  private func entry(_ key: [UInt8], _ held: RequestState) -> FeedEntry {
    // Behind every conflict so far, and within what the caller knows of.
    let offset = state.withLock { $0.head / 2 * 2 }
    return places.entry(
      key, held, at: places.position(offset),
      OperationID(replica: places.feed, sequence: offset))
  }

  /// The contents of keys, from all that the back end ever had.
  private func everything(
    of keys: Set<[UInt8]>, _ request: ValuesRequest
  ) async throws -> [[UInt8]: RequestState] {
    guard let fetch else { return [:] }
    var found: [[UInt8]: RequestState] = [:]
    var token: String?
    while true {
      let page = try await ask { [token] in try await fetch(token) }
      for (key, change) in try keyed(page, request.aliases, request.replica)
      where keys.contains(key) {
        found[key] = change.state
      }
      guard page.hasMore else { return found }
      guard page.token != token else {
        throw PeerError(.malformed, "the back end has more, and always the same")
      }
      token = page.token
    }
  }
}

extension RequestPeer {
  /// The changes of a page with their keys. What has gone of which nobody here has heard is left
  /// out.
  /// - Throws: ``PeerError`` where a change has neither key nor alias, or the key that is made of
  ///   an alias has another one.
  func keyed(
    _ page: RequestPage, _ aliases: KnownAliases?, _ replica: ReplicaID
  ) throws(PeerError) -> [(key: [UInt8], change: RequestPage.Change)] {
    var keyed: [(key: [UInt8], change: RequestPage.Change)] = []
    var made: [Alias: [UInt8]] = [:]
    for change in page.changes {
      if let key = change.key?.bytes {
        if let alias = change.alias { made[alias] = key }
        keyed.append((key, change))
        continue
      }
      guard let alias = change.alias else {
        throw PeerError(.malformed, "the back end gave a change without key and alias")
      }
      if let fault = alias.fault { throw PeerError(.malformed, fault) }
      let own = change.idempotencyKey.flatMap { OperationID(idempotencyKey: $0) }
      if let own, own.replica == replica {
        // The store knows its key, unless that is long gone.
        let key = aliases?.key(ofOwn: own.sequence)?.bytes
        if let key { made[alias] = key }
        keyed.append((key ?? [], change))
        continue
      }
      if let key = made[alias] ?? aliases?.key(ofAlias: alias)?.bytes {
        keyed.append((key, change))
        continue
      }
      guard change.state != .absent else { continue }
      let key = newKey(alias).bytes
      if let other = aliases?.alias(ofKey: key) {
        throw PeerError(
          .malformed,
          "the key made of the alias \(alias.text.prefix(64)) is that of \(other.text.prefix(64))")
      }
      made[alias] = key
      keyed.append((key, change))
    }
    return keyed
  }
}

extension RequestPlaces {
  func entry(
    _ key: [UInt8], _ held: RequestState, at position: Position, _ operation: OperationID
  ) -> FeedEntry {
    switch held {
    case .absent: FeedEntry(position: position, kind: .delete, operation: operation, key: key)
    case .value(let content):
      FeedEntry(
        position: position, kind: .put, operation: operation, key: key,
        content: SyncContent(
          value: content.value, labels: content.labelSet.map { EntryLabel($0) }, hash: content.hash,
          maxAgeSeconds: content.maxAgeSeconds))
    }
  }
}

extension RequestMemory {
  /// Whether there are entries to hand on behind a cursor.
  func hasWindow(for request: PullRequest) -> Bool {
    guard let window, window.replica == request.replica, window.scope == request.scope else {
      return false
    }
    return window.start <= request.after.offset && request.after.offset < window.end
  }

  /// Takes what the back end gave, and gives it positions.
  mutating func take(
    _ page: RequestPage, _ keyed: [(key: [UInt8], change: RequestPage.Change)],
    for request: PullRequest, _ places: RequestPlaces
  ) {
    var entries: [FeedEntry] = []
    var aliases: [UInt64: Alias] = [:]
    for (key, change) in keyed {
      let offset = nextOffset()
      let position = places.position(offset)
      aliases[offset] = change.alias
      // A former name counts no longer than the store knows better.
      if change.state == .absent { note(nil, ofKey: key, request.replica) }
      if let own = own(change, ofKey: key, of: request.replica) {
        entries.append(FeedEntry(position: position, kind: .own, operation: own, key: []))
        continue
      }
      let operation =
        change.idempotencyKey.flatMap { OperationID(idempotencyKey: $0) }
        ?? OperationID(replica: places.feed, sequence: offset)
      let entry = places.entry(key, change.state, at: position, operation)
      guard
        entry.kind == .delete
          || request.scope.contains(key: entry.key, labels: entry.content.labels)
      else { continue }
      entries.append(entry)
    }
    // Where there is more, the cursor goes on even if nothing of this page is for the reader.
    let end = page.hasMore && head <= request.after.offset ? nextOffset() : head
    note(page.token, at: end)
    window = Window(
      replica: request.replica, scope: request.scope, start: request.after.offset,
      entries: entries, aliases: aliases, end: end)
    // There is more: the head is told to be further.
    if page.hasMore { head = end + 1 }
  }

  /// The part of the entries that a pull asks for.
  mutating func answer(_ request: PullRequest, _ places: RequestPlaces) -> PullAnswer {
    let after = request.after.offset
    var entries: [FeedEntry] = []
    var cursor = max(head, after)
    var aliases: [Int: Alias] = [:]
    if let window, hasWindow(for: request) {
      cursor = window.end
      var bytes = 0
      for entry in window.entries where entry.position.offset > after {
        let size = entry.key.count + entry.content.value.count
        if let last = entries.last,
          entries.count >= request.limits.changes || bytes + size > request.limits.bytes
        {
          cursor = last.position.offset
          break
        }
        bytes += size
        aliases[entries.count] = window.aliases[entry.position.offset]
        entries.append(entry)
      }
      if cursor == window.end { self.window = nil }
    }
    var answer = PullAnswer(
      entries: entries, cursor: places.position(cursor),
      range: places.range(head: max(head, cursor)),
      mark: marks[request.replica] ?? ReplicaMark(),
      resumption: Array((token(at: cursor) ?? "").utf8))
    answer.aliases = aliases
    return answer
  }
}
