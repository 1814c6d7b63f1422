internal import Tidemark
internal import TidemarkEngine
internal import TidemarkSyncProtocol

extension RequestPeer {
  /// Fetches the back end's changes after a cursor. If there are none, it polls as long as the
  /// request says.
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
      memory.listing = nil
      guard after <= memory.head else {
        throw PeerError(.cursorGone, "the cursor is not one of this back end's")
      }
      return (memory.token(at: after), memory.hasWindow(for: request))
    }
    if fetch != nil, !isKnown {
      var walk = state.withLock { $0.walk }
      let page = try await list(token, &walk)
      var names = ListedNames()
      let keyed = try self.keyed(page, request.aliases, &names)
      state.withLock { memory in
        memory.walk = walk
        memory.take(page, keyed, for: request, positions)
      }
    }
    return state.withLock { $0.answer(request, positions) }
  }

  /// Answers with the current contents of keys: from the last conflict or list, or by asking the
  /// back end.
  public func values(_ request: ValuesRequest) async throws -> ValuesAnswer {
    let keys = Array(request.keys.prefix(SyncLimits().changes))
    let (told, listing) = try state.withLock { (memory: inout RequestMemory) throws in
      try memory.checkOpen()
      return (memory.current, memory.listing)
    }
    // A list of everything is newer than the answers with a conflict.
    var found = listing == nil ? told : [:]
    for key in keys { if let state = listing?.items[key]?.state { found[key] = state } }
    // A key that a list of everything lacks need not be asked for.
    let wanted = Set(
      keys.filter { found[$0] == nil && (listing == nil || listing?.items[$0] != nil) })
    if read == nil, !wanted.isEmpty {
      _ = try await everyPage(request.aliases) { rows in
        for row in rows where wanted.contains(row.key) { found[row.key] = row.change.state }
      }
    }
    var entries: [FeedEntry] = []
    for key in keys {
      // During a comparison an absent key is left out, so that the caller counts it as deleted:
      // it stops if it would delete suspiciously many.
      if let listing, listing.items[key] == nil { continue }
      var state = found[key]
      if state == nil, let read {
        let alias = listing?.items[key]?.alias ?? request.aliases?.alias(ofKey: key)
        state = try await ask { try await read(Key(key), alias) }
      }
      guard state != nil || read != nil || fetch != nil else {
        // The back end told it with a conflict, before the program was restarted.
        throw PeerError(
          .failed,
          "what the back end has at \(Key(key)) is not known any more; give the peer `read` or "
            + "`fetch`")
      }
      if state ?? .absent == .absent { self.state.withLock { $0.forgetAlias(ofKey: key) } }
      var entry = self.entry(key, state ?? .absent)
      entry.alias = listing?.items[key]?.alias
      entries.append(entry)
    }
    return state.withLock { memory in
      memory.tell(keys)
      return ValuesAnswer(
        entries: entries, answered: keys.count, range: positions.range(head: memory.head))
    }
  }

  private func entry(_ key: [UInt8], _ held: RequestState) -> FeedEntry {
    // Even, as another writer's; not before any conflict so far, and not after the head.
    let offset = state.withLock { $0.head / 2 * 2 }
    return positions.entry(
      key, held, at: positions.position(offset),
      OperationID(replica: positions.feed, sequence: offset))
  }
}

/// A change of a page, with its key, which a back end may give only by an alias.
struct KeyedChange: Sendable {
  var key: [UInt8]
  var change: RequestPage.Change
  /// The sequence of the store's own change that it is; nil for another writer's.
  var own: UInt64?
}

extension RequestPeer {
  /// The changes of a page with their keys, found by idempotency key, key or alias. Deletes of
  /// records that the store does not know are left out.
  /// - Parameter names: keys and aliases of the list so far; those of the page are added.
  /// - Throws: ``PeerError`` where a change has neither key nor alias, or where the key made from
  ///   an alias has another alias already.
  func keyed(
    _ page: RequestPage, _ aliases: KnownAliases?, _ names: inout ListedNames
  ) throws(PeerError) -> [KeyedChange] {
    var keyed: [KeyedChange] = []
    state.withLock { $0.noteGone(page) }
    for change in page.changes {
      if let fault = change.alias?.fault { throw PeerError(.malformed, fault) }
      let holder = change.alias.flatMap { names.keys[$0] ?? aliases?.key(ofAlias: $0)?.bytes }
      let own = own(change, aliases).flatMap { (own, isSalted) in
        // Not this store's if the record belongs to another key, or the key has another record:
        // a copy of this store has sent the same create, too.
        let name = names.aliases[own.key] ?? aliases?.alias(ofKey: own.key)
        let isIts = holder ?? own.key == own.key && (name == nil || name == change.alias)
        guard change.alias == nil || isIts else { return nil as PushedChange? }
        return isSalted && (change.alias == nil || holder != nil || name != nil) ? nil : own
      }
      var key = own?.key ?? change.key?.bytes
      if key == nil {
        guard let alias = change.alias else {
          throw PeerError(.malformed, "the back end gave a change without key and alias")
        }
        key = holder
        if key == nil {
          guard case .value(let content, _) = change.state else { continue }
          let new = try madeKey(alias, content)
          // The key's record may have been deleted, but two existing records cannot have one key.
          if !names.isOfEverything, let other = names.aliases[new] ?? aliases?.alias(ofKey: new),
            !state.withLock({ $0.isGone(other) })
          {
            throw .twoNames(alias, other)
          }
          key = new
        }
      }
      guard let key else { continue }
      if change.key == nil, names.isOfEverything, let alias = change.alias,
        change.state != .absent, let other = names.aliases[key] ?? nil, other != alias
      {
        throw .twoNames(alias, other)
      }
      names.note(change, key)
      keyed.append(KeyedChange(key: key, change: change, own: own?.sequence))
    }
    return keyed
  }

  /// The store's own change that a listed change is, by its idempotency key. The sequence in that
  /// is not enough: a copied or restored store has it for another change.
  /// - Returns: also whether its base was another writer's version (salted). Such a change is own
  ///   only if it was just sent or has created a record: a copy may have sent it after later
  ///   changes of this store.
  private func own(
    _ change: RequestPage.Change, _ aliases: KnownAliases?
  ) -> (PushedChange, isSalted: Bool)? {
    guard let aliases, let key = change.idempotencyKey.flatMap({ IdempotencyKey($0) }),
      let own = aliases.change(ofOwn: key.sequence),
      IdempotencyKey(own, of: aliases.store).hash == key.hash,
      change.key.map({ $0.bytes == own.key }) ?? true
    else { return nil }
    return (own, key.salt != 0)
  }

  private func madeKey(_ alias: KeyAlias, _ content: SyncContent) throws(PeerError) -> [UInt8] {
    do { return try newKey(alias, content).bytes } catch {
      throw PeerError(.malformed, "no key for the alias \(alias.text.prefix(64)): \(error)")
    }
  }
}

/// The keys and aliases of records in a list, as far as it was read.
struct ListedNames {
  /// Whether the list has everything, so that a record it lacks is deleted.
  var isOfEverything = false
  private(set) var keys: [KeyAlias: [UInt8]] = [:]
  /// The aliases of keys; nil where the list has their records as deleted.
  private(set) var aliases: [[UInt8]: KeyAlias?] = [:]

  mutating func note(_ change: RequestPage.Change, _ key: [UInt8]) {
    if let alias = change.alias { keys[alias] = key }
    if change.state == .absent {
      aliases[key] = .some(nil)
    } else if let alias = change.alias {
      aliases[key] = alias
    }
  }
}

extension PeerError {
  /// The error when the key made from an alias has another alias.
  static func twoNames(_ alias: KeyAlias, _ other: KeyAlias) -> PeerError {
    PeerError(
      .malformed,
      "the key made of the alias \(alias.text.prefix(64)) is that of \(other.text.prefix(64))")
  }
}

extension RequestPositions {
  func entry(
    _ key: [UInt8], _ held: RequestState, at position: FeedPosition, _ operation: OperationID,
    time: Timestamp? = nil
  ) -> FeedEntry {
    switch held {
    case .absent:
      FeedEntry(
        position: position, kind: .delete, operation: operation, key: key,
        commitTime: Self.commitTime(time))
    case .value(let content, let time):
      FeedEntry(
        position: position, kind: .put, operation: operation, key: key,
        content: SyncContent(
          value: content.value, labels: content.labelSet.map { EntryLabel($0) }, hash: content.hash,
          maxAgeSeconds: content.maxAgeSeconds), commitTime: Self.commitTime(time))
    }
  }

  /// The back end's time of a change as a commit time; 0 where it gives none.
  private static func commitTime(_ time: Timestamp?) -> UInt64 {
    min(time?.sinceEpoch ?? 0, 1 << 48 - 1) << 16
  }
}

extension RequestMemory {
  /// Whether the fetched page has entries for a pull, so that no other need be fetched.
  func hasWindow(for request: PullRequest) -> Bool {
    guard let window, window.replica == request.replica, window.scope == request.scope else {
      return false
    }
    return window.start <= request.after.offset && request.after.offset < window.end
  }

  /// Assigns positions to a fetched page, and keeps it for this pull and the next ones.
  mutating func take(
    _ page: RequestPage, _ keyed: [KeyedChange], for request: PullRequest,
    _ positions: RequestPositions
  ) {
    var entries: [FeedEntry] = []
    for row in keyed {
      let (key, change) = (row.key, row.change)
      let own =
        row.own.map { OperationID(replica: request.replica, sequence: $0) }
        ?? own(change, ofKey: key, of: request.replica)
      let offset = nextOffset(isOfOther: own == nil)
      let position = positions.position(offset)
      // The alias of a deleted record must not be used any more.
      if change.state == .absent { forgetAlias(ofKey: key) }
      if let own {
        var entry = FeedEntry(position: position, kind: .own, operation: own, key: [])
        entry.alias = change.alias
        entries.append(entry)
        continue
      }
      var entry = positions.entry(
        key, change.state, at: position,
        OperationID(replica: positions.feed, sequence: offset), time: change.time)
      guard
        entry.kind == .delete
          || request.scope.contains(key: entry.key, labels: entry.content.labels)
      else { continue }
      entry.alias = change.alias
      entries.append(entry)
    }
    // If more pages follow, the cursor must move even if this one has nothing for the reader.
    let end = page.hasMore && head <= request.after.offset ? nextOffset() : head
    note(page.token, at: end)
    window = Window(
      replica: request.replica, scope: request.scope, start: request.after.offset,
      entries: entries, end: end)
    // The head is put after the cursor, so that the caller pulls again.
    if page.hasMore { head = end + 1 }
  }

  /// Answers a pull from the fetched page, within the request's limits.
  mutating func answer(_ request: PullRequest, _ positions: RequestPositions) -> PullAnswer {
    let after = request.after.offset
    var entries: [FeedEntry] = []
    var cursor = max(head, after)
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
        entries.append(entry)
      }
      if cursor == window.end { self.window = nil }
    }
    return PullAnswer(
      entries: entries, cursor: positions.position(cursor),
      range: positions.range(head: max(head, cursor)),
      mark: marks[request.replica] ?? ReplicaMark(),
      resumption: Array((token(at: cursor) ?? "").utf8))
  }
}
