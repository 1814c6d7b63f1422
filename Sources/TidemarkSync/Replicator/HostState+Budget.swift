internal import TidemarkEngine
internal import TidemarkSyncProtocol

extension HostState {
  /// The calls that are allowed now, nil for none, and why not all are.
  mutating func permit(
    _ budget: SyncBudget?
  ) throws(TidemarkError) -> (gate: SyncGate?, reason: HoldReason?) {
    guard let budget else { return (SyncGate(), nil) }
    let condition = budget.network?.condition ?? .unrestricted
    guard let bytesPerDay = budget.bytesPerDay else {
      return budget.permit(on: condition, remaining: nil, until: .init(milliseconds: 0))
    }
    let now = engine.environment.clock.now().sinceEpoch
    var ledger = try readLedger()
    let hasChanged = ledger.renew(now)
    self.ledger = ledger
    if hasChanged { try record(ledger) }
    return budget.permit(
      on: condition, remaining: ledger.remaining(of: bytesPerDay),
      until: Timestamp(milliseconds: Int64(clamping: ledger.end(now))))
  }

  /// Counts a call that is about to be made, or an answer.
  mutating func charge(
    sent: Int = 0, taken: Int = 0, _ budget: SyncBudget?
  ) throws(TidemarkError) {
    guard let budget, let bytesPerDay = budget.bytesPerDay else { return }
    let bytes = sent + (budget.counted == .both ? taken : 0)
    guard bytes > 0 else { return }
    var ledger = try readLedger()
    ledger.charge(bytes, at: engine.environment.clock.now().sinceEpoch)
    self.ledger = ledger
    let rounded = ledger.roundedUp(bytesPerDay)
    guard let recordedLedger, recordedLedger.start == rounded.start,
      recordedLedger.used >= rounded.used
    else { return try record(rounded) }
  }

  /// Writes down what is used exactly, before the replicator ends.
  mutating func recordLedger() throws(TidemarkError) {
    guard try session().progress.feed != nil else { return }
    if let ledger, ledger != recordedLedger { try record(ledger) }
  }

  private mutating func readLedger() throws(TidemarkError) -> BudgetLedger {
    if let ledger { return ledger }
    // A ledger that cannot be read counts for nothing, as one that was never written.
    let read =
      try session().records.table.value(of: .peerBudget, key: Array(name.utf8))
      .flatMap { try? BudgetLedger(decoding: $0.rawSpan) }
    recordedLedger = read
    ledger = read
    return read ?? BudgetLedger()
  }

  private mutating func record(_ value: BudgetLedger) throws(TidemarkError) {
    let session = try session()
    var batch = OperationBatch()
    try RecordTable.add(.peerBudget, key: Array(name.utf8), value: value.encoded, to: &batch)
    let result = try engine.commit(batch, durability: .buffered)
    recordedLedger = value
    try session.records.note(batch, result)
  }
}
