public import Tidemark
public import TidemarkEngine
internal import TidemarkSyncProtocol

extension Store {
  /// Counts the newest own puts and deletes that have no verdict of the peer yet; those that wait
  /// for the user (parked, undecided) are counted apart.
  ///
  /// With a live replicator of the name this is cheap: it reads the entries written since the last
  /// call. Else it reads the log from the first change on that was not sent.
  /// - Parameter name: of the peer. Nil counts the entries that at least one peer lacks, each once;
  ///   in a store without peers, that is all own entries.
  public func pending(for name: String? = nil) async throws(TidemarkError) -> PendingSummary {
    try await onSyncThread { try $0.pending(for: name) }
  }

  /// Returns a page of the entries that a peer does not have yet, in the order of their sequences.
  /// - Parameters:
  ///   - name: the name of the replicator for the peer; nil for the store's only peer, or for none.
  ///   - label: only entries that carry this label; nil for all.
  ///   - sequence: the previous page's `next`; 0 for the first page.
  ///   - limit: the most entries of a page.
  /// - Throws: `invalidArgument` without a name when the store knows several peers.
  public func pendingEntries(
    for name: String? = nil, label: EntryLabel? = nil, after sequence: UInt64 = 0, limit: Int = 1000
  ) async throws(TidemarkError) -> PendingPage {
    try await onSyncThread {
      try $0.pendingEntries(for: name, label: label, after: sequence, limit: limit)
    }
  }

  /// Counts, for each label, the entries with that label that a peer does not have yet.
  /// - Parameter name: the name of the replicator for the peer; nil for the store's only peer, or
  ///   for none.
  public func pendingByLabel(for name: String? = nil) async throws(TidemarkError) -> [EntryLabel:
    Int]
  {
    try await onSyncThread { try $0.pendingByLabel(for: name) }
  }

  func onSyncThread<R: Sendable>(
    _ body: @escaping @Sendable (Blocking) throws -> R
  ) async throws(TidemarkError) -> R {
    try await offPool("tidemark-sync") { (store) throws(TidemarkError) in
      do { return try body(store) } catch { throw TidemarkError(sync: error) }
    }
  }
}

extension Store.Blocking {
  /// Counts the entries that a peer does not have yet, blocking; see
  /// ``TidemarkStore/Store/pending(for:)``.
  public func pending(for name: String? = nil) throws(TidemarkError) -> PendingSummary {
    let names = if let name { [name] } else { try peerNames() }
    return names.count > 1
      ? try united(names) : try ask(names.first) { try $0.pendingSummary() }
  }

  /// The entries that at least one of several peers lacks.
  private func united(_ names: [String]) throws(TidemarkError) -> PendingSummary {
    var rows: [UInt64: Int] = [:]
    var result = PendingSummary()
    for name in names {
      try ask(name) { state in
        let summary = try state.pendingSummary()
        result.inFlight += summary.inFlight
        result.parked += summary.parked
        result.needsDecision += summary.needsDecision
        if let oldest = summary.oldest { result.oldest = min(result.oldest ?? oldest, oldest) }
        let waiting = try state.session().outbox.waiting
        for row in try state.pending().liveRows
        where waiting[row.sequence]?.state.goesOn != false {
          rows[row.sequence] = Int(row.bytes)
        }
      }
    }
    result.entries = rows.count
    result.bytes = rows.values.reduce(0, +)
    return result
  }

  /// Returns a page of the entries that a peer does not have yet, blocking; see
  /// ``TidemarkStore/Store/pendingEntries(for:label:after:limit:)``.
  public func pendingEntries(
    for name: String? = nil, label: EntryLabel? = nil, after sequence: UInt64 = 0, limit: Int = 1000
  ) throws(TidemarkError) -> PendingPage {
    try ask(onlyPeer(name)) { try $0.pendingPage(after: sequence, limit: limit, label) }
  }

  /// Counts, for each label, the entries that a peer does not have yet, blocking; see
  /// ``TidemarkStore/Store/pendingByLabel(for:)``.
  public func pendingByLabel(for name: String? = nil) throws(TidemarkError) -> [EntryLabel: Int] {
    try ask(onlyPeer(name)) { try $0.pendingByLabel() }
  }

  /// Returns the entries that a peer has refused, blocking; see ``Replicator/parked()``.
  public func parked(for name: String? = nil) throws(TidemarkError) -> [ParkedEntry] {
    try ask(onlyPeer(name)) { try $0.parked() }
  }

  /// Sends several refused entries again, as new entries in one commit, blocking; see
  /// ``Replicator/retry(all:)``.
  /// - Returns: the sequences of the new entries. Entries that are no longer parked are skipped.
  @discardableResult
  public func retryParked(all sequences: [UInt64], for name: String? = nil) throws(TidemarkError)
    -> [UInt64]
  {
    try ask(onlyPeer(name)) { try $0.session().retry(sequences) }
  }

  /// Discards several refused entries in one commit, blocking; see ``Replicator/discard(all:)``.
  /// - Returns: the keys of pending entries written `after` them. Entries that are no longer parked
  ///   are skipped.
  @discardableResult
  public func discardParked(all sequences: [UInt64], for name: String? = nil) throws(TidemarkError)
    -> [Key]
  {
    try ask(onlyPeer(name)) { try $0.discard(sequences).dependents }
  }

  /// The given name; without one the store's only peer, or nil in a store without peers.
  private func onlyPeer(_ name: String?) throws(TidemarkError) -> String? {
    if let name { return name }
    let names = try peerNames()
    guard names.count <= 1 else {
      throw TidemarkError(
        .invalidArgument,
        "the store has several peers: \(names.joined(separator: ", ")); say which")
    }
    return names.first
  }

  /// Runs `body` with the session of a peer; without a name with that of no peer, to which every
  /// own entry is pending.
  func ask<R>(_ name: String?, _ body: (inout HostState) throws -> R) throws(TidemarkError) -> R {
    try SyncHost.of(store, name: name ?? "").performHere(body)
  }
}

/// An entry of this store that a peer does not have yet.
public struct PendingEntry: Sendable, Hashable {
  /// The key that the pending entry writes or deletes.
  public var key: Key
  /// The sequence of the pending entry in the store's log.
  public var sequence: UInt64
  /// Whether the pending entry is a put or a delete.
  public var kind: ChangeKind
  /// The labels of the pending entry.
  public var labels: [EntryLabel]
  /// The size of the pending entry: the bytes of its key and value together.
  public var bytes: Int
  /// When this store committed the pending entry.
  public var commitTime: Timestamp
  /// Why the peer does not have the entry yet: it waits, is in flight, is in conflict or was
  /// refused.
  public var state: PendingState
}

/// A page of the entries that a peer does not have yet; see
/// ``TidemarkStore/Store/pendingEntries(for:label:after:limit:)``.
public struct PendingPage: Sendable, Hashable {
  /// The pending entries of this page, in the order of their sequences.
  public var entries: [PendingEntry]
  /// The argument `after` of the call for the next page; nil on the last page.
  public var next: UInt64?
}

extension HostState {
  mutating func pendingSummary() throws(TidemarkError) -> PendingSummary {
    let table = try pending()
    let session = try session()
    var summary = PendingSummary()
    summary.entries = table.count
    summary.bytes = table.bytes
    summary.inFlight = session.sequencesInFlight.sequences.count { table.row($0) != nil }
    var waits: Set<UInt64> = []
    for (sequence, reason) in session.outbox.waiting where !reason.state.goesOn {
      guard let row = table.row(sequence) else { continue }
      waits.insert(sequence)
      summary.entries -= 1
      summary.bytes -= Int(row.bytes)
      if reason == .needsDecision { summary.needsDecision += 1 } else { summary.parked += 1 }
    }
    if let oldest = table.liveRows.first(where: { !waits.contains($0.sequence) }) {
      summary.oldest = try log.change(at: oldest.sequence).map {
        HybridTime($0.commitTime).timestamp
      }
    }
    return summary
  }

  /// How many entries carry each label, without those that wait for the user (not `goesOn`).
  mutating func pendingByLabel() throws(TidemarkError) -> [EntryLabel: Int] {
    let table = try pending()
    var sets = table.perLabelSet
    for (sequence, reason) in try session().outbox.waiting where !reason.state.goesOn {
      if let row = table.row(sequence) { sets[row.labelSet, default: 1] -= 1 }
    }
    var counts: [EntryLabel: Int] = [:]
    for (set, count) in sets where count > 0 {
      for label in table.labels(ofSet: set) { counts[label, default: 0] += count }
    }
    return counts
  }

  mutating func state(of change: LoggedChange) throws(TidemarkError) -> PendingState {
    let session = try session()
    if let reason = session.outbox.waiting[change.sequence] { return reason.state }
    if session.sequencesInFlight.contains(change.sequence) { return .inFlight }
    return try session.stateOfUnsent(change)
  }

  mutating func pendingPage(
    after sequence: UInt64, limit: Int, _ label: EntryLabel? = nil
  ) throws(TidemarkError) -> PendingPage {
    let table = try pending()
    var page = PendingPage(entries: [], next: nil)
    for row in table.rows[table.index(after: sequence)...] where row.isLive {
      if let label, !table.labels(ofSet: row.labelSet).contains(label) { continue }
      guard page.entries.count < max(1, limit) else {
        page.next = page.entries.last?.sequence
        break
      }
      guard let change = try log.change(at: row.sequence) else { continue }
      page.entries.append(
        PendingEntry(
          key: Key(change.key), sequence: change.sequence,
          kind: change.kind == .put ? .put : .delete, labels: change.labels,
          bytes: Int(row.bytes), commitTime: HybridTime(change.commitTime).timestamp,
          state: try state(of: change)))
    }
    return page
  }
}

/// The sync state of a key at a peer, for the badge beside a row of a list.
@nonexhaustive
public enum KeyState: Sendable, Hashable {
  /// The peer has this store's version of the key, or the store pulled that version from the peer.
  case synced
  /// The peer does not have the key's newest entry yet. The associated state says why.
  case waiting(PendingState)
  /// The key does not replicate. It has no entry, its entry is of class `cache` or out of the
  /// scope, or it was put and deleted before it was sent.
  case local
}

extension HostState {
  mutating func states(ofKeys keys: [[UInt8]]) throws(TidemarkError) -> [KeyState] {
    let table = try pending()
    let session = try session()
    return try keys.map { (key) throws(TidemarkError) in
      guard let newest = try log.newestChange(ofKey: key),
        newest.attributes.entryClass == .owned, newest.kind != .evict
      else { return .local }
      if table.row(newest.sequence) != nil { return .waiting(try state(of: newest)) }
      let isThere = newest.attributes.origin != nil || session.position(of: newest) != nil
      return isThere ? .synced : .local
    }
  }
}

extension Replicator {
  /// Returns the sync state of a key at this peer, for the badge beside its row in a list.
  public func state(forKey key: some BytesConvertible) async throws(TidemarkError) -> KeyState {
    try await states(forKeys: [Key(key)])[0]
  }

  /// Returns the sync states of several keys at this peer, in the order of `keys`.
  public func states(forKeys keys: [Key]) async throws(TidemarkError) -> [KeyState] {
    let bytes = keys.map(\.bytes)
    return try await host.performPublic { try $0.states(ofKeys: bytes) }
  }

  /// Streams the sync states of several keys, in the order of `keys`: the present states first,
  /// then all states again whenever one of them changes.
  ///
  /// The sequence ends when its reader stops, and throws when the store fails. A slow reader may
  /// miss intermediate states, but never the last.
  public func stateChanges(forKeys keys: [Key]) -> AsyncThrowingStream<[KeyState], any Error> {
    let (stream, continuation) = AsyncThrowingStream.makeStream(
      of: [KeyState].self, bufferingPolicy: .bufferingNewest(1))
    let task = Task { [self] in
      do {
        try await watch(keys) { continuation.yield($0) }
        continuation.finish()
      } catch { continuation.finish(throwing: error) }
    }
    continuation.onTermination = { _ in task.cancel() }
    return stream
  }

  private func watch(_ keys: [Key], _ body: ([KeyState]) -> Void) async throws {
    // A write changes the states of its keys before the session does.
    let token = store.engine.observe { [changed = host.changed] in changed.raise() }
    defer { store.engine.stopObserving(token) }
    var last: [KeyState]?
    while !Task.isCancelled {
      let seen = host.changed.count
      let states = try await states(forKeys: keys)
      if states != last { body(states) }
      last = states
      await host.changed.wait(beyond: seen)
    }
  }
}

extension ObjectCollection {
  /// Returns the sync states of objects at a replicator's peer, by id, for the badges beside the
  /// rows of a list.
  ///
  /// ```swift
  /// let states = try await notes.syncState(of: list.ids, by: replicator)
  /// ```
  public func syncState(
    of ids: [ID], by replicator: Replicator
  ) async throws(TidemarkError) -> [ID: KeyState] {
    let keys = try ids.map { (id) throws(TidemarkError) in try key(for: id) }
    let states = try await replicator.states(forKeys: keys)
    return Dictionary(zip(ids, states), uniquingKeysWith: { first, _ in first })
  }

  /// Streams the sync states of objects at a replicator's peer, by id: the present states first,
  /// then all again whenever one changes; see ``Replicator/stateChanges(forKeys:)``.
  /// - Parameters:
  ///   - ids: the ids of the objects.
  ///   - replicator: the replicator of the peer.
  public func syncStates(
    of ids: [ID], by replicator: Replicator
  ) throws(TidemarkError) -> some AsyncSequence<[ID: KeyState], any Error> & Sendable {
    let keys = try ids.map { (id) throws(TidemarkError) in try key(for: id) }
    return replicator.stateChanges(forKeys: keys).map { states in
      Dictionary(zip(ids, states), uniquingKeysWith: { first, _ in first })
    }
  }
}
