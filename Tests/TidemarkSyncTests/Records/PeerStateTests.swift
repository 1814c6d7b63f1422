import Testing
import TidemarkEngine
import TidemarkTestKit

@testable import TidemarkSync
@testable import TidemarkSyncProtocol

@Suite("The records of a peer")
struct PeerStateTests {
  @Test("a number that is given a second time has another id")
  func naming() {
    var naming = BatchNaming()
    var seed: UInt64 = 0
    func next(_ number: UInt64) -> BatchID {
      naming.next(number) {
        seed += 1
        return seed
      }
    }
    let ids = [1, 2, 2, 3, 1, 2, 3].map { next($0) }
    #expect(Set(ids).count == ids.count && seed == 3)
  }

  private func progress(_ seed: UInt64) -> (PeerProgress, OutgoingBatch?, [AcknowledgedRun]) {
    var random = SeededGenerator(seed: seed)
    func number() -> UInt64 { random.next() >> UInt64(16 + random.int(below: 40)) }
    func position() -> FeedPosition {
      FeedPosition(epoch: random.chance(0.5) ? 7 : number(), offset: number())
    }
    var progress = PeerProgress()
    if random.chance(0.8) { progress.feed = ReplicaID((0..<16).map { _ in UInt8(number() & 255) }) }
    progress.cursor = position()
    progress.furthest = position()
    for _ in 0..<random.int(below: 4) {
      let first = (progress.epochs.last?.firstOffset ?? 1) + UInt64(random.int(below: 9))
      progress.epochs.append(FeedEpoch(epoch: number(), firstOffset: first))
    }
    progress.number = number()
    progress.seed = random.next()
    let usual = progress.usualID(progress.number)
    progress.batchID = random.chance(0.5) ? BatchID(random.next()) : usual
    var pending = SequenceSet()
    for _ in 0..<random.int(below: 8) { pending.insert(number() + 1) }
    progress.outbox = Outbox(frontier: number(), pending: pending)
    if random.chance(0.5) { progress.resync = Resync(adopts: true, seenThrough: number()) }
    if random.chance(0.5) { progress.resumption = [1, 2, 3] }
    progress.scope = number()
    progress.reach = number()
    progress.possiblyKnownThrough = random.chance(0.5) ? number() : 0
    if random.chance(0.5) { progress.comparedThrough = position() }
    let bases: [ChangeBase] = [.absent, .position(position()), .operation(sequence: number())]
    let items = (0..<UInt64(random.int(below: 5))).map {
      OutgoingBatch.Item(sequence: $0 * 3 + 1, base: bases[random.int(below: 3)])
    }
    let batch = OutgoingBatch(
      number: progress.number + 1,
      batchID: random.chance(0.5) ? progress.usualID(progress.number + 1) : BatchID(number()),
      items: items)
    var runs = AcknowledgedRuns()
    for step in 0..<UInt64(random.int(below: 9)) { runs.add(step * step + 1, at: position()) }
    return (progress, random.chance(0.7) ? batch : nil, runs.tail)
  }

  @Test("a peer's state is read as it was written", arguments: 1...40 as ClosedRange<UInt64>)
  func written(seed: UInt64) throws {
    let (progress, batch, tail) = progress(seed)
    let pin = RetentionPin(frontier: 3, acknowledgedThrough: 2, renewed: 77)
    var parts = PeerProgress.Basis(
      head: progress.head, epoch: 7, pending: self.progress(seed + 1).0.outbox.pending)
    let basis = try parts.encoded()
    parts.note(basis.rawSpan)
    let record = try PeerState.encode(progress, parts, batch, tail, pin)
    let (first, rest) = try RetentionPin.split(record.rawSpan)
    #expect(try RetentionPin(decoding: first.rawSpan) == pin)
    let read = try PeerState.decode(rest.rawSpan, basis: basis.rawSpan)
    #expect(read.progress == progress && read.batch == batch && read.tail == tail, "seed \(seed)")
    #expect(read.basis == parts)
    // A step makes no sense upon another basis.
    var other = parts
    other.pending.insert(999_999)
    let foreign = try other.encoded()
    #expect(throws: FormatError.self) {
      try PeerState.decode(rest.rawSpan, basis: foreign.rawSpan)
    }
  }

  @Test("a peer's words that are too long are cut before they are kept")
  func words() throws {
    let long = String(repeating: "ö", count: 100_000)
    let reason = WaitReason.parked(SyncRejection(code: long, message: long)).bounded
    guard case .parked(let rejection) = reason else {
      Issue.record("it is another reason")
      return
    }
    #expect(rejection.code.utf8.count == 64 && rejection.message.utf8.count == 512)
  }

  @Test("an entry that is sent from among thousands of scattered ones costs some hundred bytes")
  func scattered() throws {
    let engine = try Engine.open(
      "store", configuration: EngineConfiguration(),
      environment: EngineEnvironment(
        fileSystem: SimulatedFileSystem(seed: 3), clock: ManualClock(),
        random: SeededRandom(seed: 4)))
    defer { try? engine.close() }
    let records = try PeerRecords(ReplicationLog(engine), peer: Array("peer".utf8))
    var progress = PeerProgress()
    progress.outbox = Outbox(
      frontier: 60_001, pending: SequenceSet(ascending: (1...20_000).map { $0 * 3 }))
    var acknowledged = AcknowledgedRuns()
    let pin = RetentionPin(frontier: 1, acknowledgedThrough: 0, renewed: 1)
    var bytes = 0
    for step in 0..<1_500 as Range<UInt64> {
      if step > 0 { progress.outbox.resend(step * 38 / 3 * 3 + 1) }
      var batch = OperationBatch()
      let written = try records.write(progress, &acknowledged, nil, pin, into: &batch)
      if step > 0 { bytes += batch.arena.count }
      let result = try engine.commit(batch)
      try records.note(batch, result)
      records.basis = written
    }
    #expect(bytes < 1_500 * 1_000, "\(bytes) bytes; steps with all of it have 60,000,000")
    let read = try #require(
      try PeerRecords(ReplicationLog(engine), peer: Array("peer".utf8)).savedState())
    #expect(read.progress == progress)
  }

  @Test("records that make no sense are refused, whatever their bytes", arguments: [1, 2, 3])
  func hostile(seed: UInt64) throws {
    var random = SeededGenerator(seed: seed)
    for round in 0..<2_000 as Range<UInt64> {
      let (progress, outgoing, tail) = progress(round % 40 + 1)
      var parts = PeerProgress.Basis(
        head: progress.head, epoch: 7, pending: self.progress(round % 7).0.outbox.pending)
      var basis = try parts.encoded()
      parts.note(basis.rawSpan)
      var record = try PeerState.encode(
        progress, parts, outgoing, tail,
        RetentionPin(frontier: 3, acknowledgedThrough: 2, renewed: 77))
      for _ in 0...random.int(below: 4) {
        record[random.int(below: record.count)] = UInt8(random.int(below: 256))
      }
      if random.chance(0.3) { basis[random.int(below: basis.count)] = 255 }
      if random.chance(0.3) { record.removeLast(random.int(below: record.count)) }
      guard let (pin, rest) = try? RetentionPin.split(record.rawSpan) else { continue }
      _ = try? RetentionPin(decoding: pin.rawSpan)
      guard let read = try? PeerState.decode(rest.rawSpan, basis: basis.rawSpan) else {
        continue
      }
      _ = (try? AcknowledgedRuns(decoding: [], tail: read.tail))?.position(of: 5)
    }
  }
}
