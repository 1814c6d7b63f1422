public import Tidemark
public import TidemarkEngine

extension Store {
  /// How much is not synced; see ``PendingSummary`` for what counts.
  ///
  /// With a replicator of the name that is live this is cheap: only what was written since the
  /// last call is looked at. Else the log is read from where the peer has come to.
  /// - Parameter name: of the peer. Nil counts what at least one peer lacks, each entry once; in a
  ///   store that knows no peer, that is all own entries.
  public func pending(for name: String? = nil) async throws(TidemarkError) -> PendingSummary {
    try await onSyncThread { (store) throws(TidemarkError) in try store.pending(for: name) }
  }

  /// Entries that are not synced, in the order of their sequences.
  /// - Parameters:
  ///   - name: of the peer; nil for the only peer of the store, or for none.
  ///   - label: only entries that carry it.
  ///   - sequence: where the page before has ended.
  ///   - limit: most entries of the page.
  /// - Throws: `invalidArgument` without a name when the store knows several peers.
  public func pendingEntries(
    for name: String? = nil, label: EntryLabel? = nil, after sequence: UInt64 = 0, limit: Int = 1000
  ) async throws(TidemarkError) -> PendingPage {
    try await onSyncThread { (store) throws(TidemarkError) in
      try store.pendingEntries(for: name, label: label, after: sequence, limit: limit)
    }
  }

  /// How many entries that are not synced carry each label.
  public func pendingByLabel(for name: String? = nil) async throws(TidemarkError) -> [EntryLabel:
    Int]
  {
    try await onSyncThread { (store) throws(TidemarkError) in
      try store.pendingByLabel(for: name)
    }
  }

  func onSyncThread<R: Sendable>(
    _ body: @escaping @Sendable (Blocking) throws(TidemarkError) -> R
  ) async throws(TidemarkError) -> R { try await offPool("tidemark-sync", body) }
}

extension Store.Blocking {
  /// How much is not synced; see ``Tidemark/Store/pending(for:)``.
  public func pending(for name: String? = nil) throws(TidemarkError) -> PendingSummary {
    var names: [String] = []
    if let name { names = [name] } else { names = try peerNames() }
    guard names.count > 1 else {
      return try withHost(names.first) { (state) throws(TidemarkError) in
        try state.pendingSummary()
      }
    }
    return try united(names)
  }

  /// The entries that at least one of several peers lacks.
  private func united(_ names: [String]) throws(TidemarkError) -> PendingSummary {
    var rows: [UInt64: Int] = [:]
    var result = PendingSummary()
    for name in names {
      try withHost(name) { (state) throws(TidemarkError) in
        let summary = try state.pendingSummary()
        result.inFlight += summary.inFlight
        result.parked += summary.parked
        result.needsDecision += summary.needsDecision
        if let oldest = summary.oldest { result.oldest = min(result.oldest ?? oldest, oldest) }
        let waiting = try state.session().progress.waiting
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

  /// Entries that are not synced; see ``Tidemark/Store/pendingEntries(for:label:after:limit:)``.
  public func pendingEntries(
    for name: String? = nil, label: EntryLabel? = nil, after sequence: UInt64 = 0, limit: Int = 1000
  ) throws(TidemarkError) -> PendingPage {
    try withHost(try onlyPeer(name)) { (state) throws(TidemarkError) in
      try state.pendingPage(after: sequence, limit: limit, label)
    }
  }

  /// How many entries that are not synced carry each label.
  public func pendingByLabel(for name: String? = nil) throws(TidemarkError) -> [EntryLabel: Int] {
    try withHost(try onlyPeer(name)) { (state) throws(TidemarkError) in
      try state.pendingByLabel()
    }
  }

  /// The entries that a peer has refused; see ``Replicator/parked()``.
  public func parked(for name: String? = nil) throws(TidemarkError) -> [ParkedEntry] {
    try withHost(try onlyPeer(name)) { (state) throws(TidemarkError) in try state.parked() }
  }

  /// Sends a refused entry once more; see ``Replicator/retry(_:)``.
  @discardableResult
  public func retryParked(_ sequence: UInt64, for name: String? = nil) throws(TidemarkError)
    -> UInt64
  {
    try told(name) { try $0.session().retry(sequence) }
  }

  /// Sends refused entries once more, many in one commit; see ``Replicator/retry(all:)``.
  /// - Returns: the sequences of the new entries. What is not parked any more is passed over.
  @discardableResult
  public func retryParked(all sequences: [UInt64], for name: String? = nil) throws(TidemarkError)
    -> [UInt64]
  {
    try told(name) { try $0.session().retry(sequences) }
  }

  /// Gives refused entries up, many in one commit; see ``Replicator/discard(all:)``.
  /// - Returns: the keys of pending entries that were to come after them. What is not parked any
  ///   more is passed over.
  @discardableResult
  public func discardParked(all sequences: [UInt64], for name: String? = nil) throws(TidemarkError)
    -> [Key]
  {
    try told(name) { try $0.discard(sequences) }
  }

  /// Gives a refused entry up; see ``Replicator/discard(_:)``.
  @discardableResult
  public func discardParked(_ sequence: UInt64, for name: String? = nil) throws(TidemarkError)
    -> [Key]
  {
    try told(name) { try $0.discard(sequence) }
  }

  /// The only peer of the store, or none, where no name is given.
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

  /// Does something with the session of the only peer; what fails is told as a `TidemarkError`.
  private func told<R>(
    _ name: String?, _ body: (inout HostState) throws -> R
  ) throws(TidemarkError) -> R {
    let name = try onlyPeer(name)
    do { return try SyncHost.of(store, name: name ?? "").performHere(body) } catch {
      throw TidemarkError(sync: error)
    }
  }

  func withHost<R>(
    _ name: String?, _ body: (inout HostState) throws(TidemarkError) -> R
  ) throws(TidemarkError) -> R {
    try SyncHost.of(store, name: name ?? "").performHere(body)
  }
}
