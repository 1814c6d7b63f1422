import Testing
import TidemarkEngine
import TidemarkTestKit

@testable import TidemarkSync
@testable import TidemarkSyncProtocol

@Suite("Positions of own operations")
struct AcknowledgedRunsTests {
  private typealias Run = AcknowledgedRuns.Run

  /// The records as the log has them.
  private final class Records {
    var values: [UInt64: [UInt8]] = [:]
    var tail: [UInt8] = AcknowledgedRunsCoding.encode([])
    /// Bytes written so far.
    var written = 0

    /// Commits what a copy has added.
    func commit(_ runs: inout AcknowledgedRuns, _ body: (inout AcknowledgedRuns) -> Void) {
      var next = runs
      body(&next)
      for (index, value) in next.drainChanges() {
        values[index] = value.isEmpty ? nil : value
        written += value.count
      }
      tail = AcknowledgedRunsCoding.encode(next.tail[...])
      written += tail.count
      runs = next
    }

    func read() throws -> AcknowledgedRuns {
      try AcknowledgedRuns(
        decoding: values.map { (number: $0.key, value: $0.value) },
        tail: try AcknowledgedRunsCoding.decode(tail))
    }
  }

  private func position(_ offset: UInt64, epoch: UInt64 = 7) -> FeedPosition {
    FeedPosition(epoch: epoch, offset: offset)
  }

  @Test(
    "positions are those that were added, however they came",
    arguments: 1...12 as ClosedRange<UInt64>)
  func model(seed: UInt64) throws {
    var random = SeededGenerator(seed: seed)
    var model: [UInt64: FeedPosition] = [:]
    var runs = AcknowledgedRuns()
    let records = Records()
    var (sequence, offset, epoch) = (UInt64(1), UInt64(1), UInt64(1))
    for round in 0..<60 {
      if random.chance(0.1) { epoch += 1 }
      var batch: [(UInt64, FeedPosition)] = []
      for _ in 0..<random.int(below: 200) {
        if random.chance(0.4) { sequence += UInt64(random.int(below: 5)) }
        if random.chance(0.3) { offset += UInt64(random.int(below: 4)) }
        let isLate = random.chance(0.1) && sequence > 20
        let own = isLate ? sequence - UInt64(random.int(below: 20)) : sequence
        batch.append((own, position(offset, epoch: epoch)))
        if !isLate { sequence += 1 }
        offset += 1
      }
      if random.chance(0.2) {
        // A commit that failed leaves no trace.
        var failed = runs
        for (own, place) in batch { failed.add(own, at: place) }
        _ = failed.drainChanges()
      }
      records.commit(&runs) { runs in
        for (own, place) in batch {
          runs.add(own, at: place)
          #expect(runs.position(of: own) == model[own] ?? place, "seed \(seed)")
          model[own] = model[own] ?? place
        }
      }
      if random.chance(0.1) {
        let end = UInt64(random.int(below: Int(offset)))
        records.commit(&runs) { runs in
          let lost = runs.removeLost { $0.offset <= end }
          #expect(
            lost.sorted() == model.filter { $0.value.offset > end }.keys.sorted(), "seed \(seed)")
        }
        model = model.filter { $0.value.offset <= end }
      }
      if random.chance(0.2) || round == 59 { runs = try records.read() }
      for _ in 0..<100 {
        let own = UInt64(random.int(below: Int(sequence) + 2))
        #expect(runs.position(of: own) == model[own], "seed \(seed)")
      }
    }
    #expect(runs.runs.reduce(0) { $0 + Int($1.count) } == model.count, "seed \(seed)")
    records.commit(&runs) { $0.removeAll() }
    #expect(records.values.isEmpty, "seed \(seed)")
  }

  @Test("bytes written for an edit do not grow with the edits before it")
  func bytesPerEdit() {
    var runs = AcknowledgedRuns()
    let records = Records()
    var (sequence, offset) = (UInt64(1), UInt64(2))
    func bytes(edits: Int) -> Int {
      let before = records.written
      for _ in 0..<edits {
        records.commit(&runs) { $0.add(sequence, at: position(offset)) }
        // At uneven distances.
        sequence += 4 + offset % 5
        offset += 2 + sequence % 2
      }
      return (records.written - before) / edits
    }
    let first = bytes(edits: 300)
    #expect(first < 100)
    #expect(bytes(edits: 3_000) <= first + 20)
    // The next opening reads all of it.
    let kept = records.values.values.reduce(0) { $0 + $1.count }
    #expect(kept < 3_300 * 5)
    // One that comes late changes the record that it belongs to.
    let before = records.written
    let late = (402...).first { runs.position(of: $0) == nil } ?? 0
    records.commit(&runs) { $0.add(late, at: position(offset)) }
    #expect(records.written - before < 900)
  }

  @Test("positions that a restored feed has lost are gone from the log, too")
  func restored() throws {
    let world = try SyncWorld(devices: 1)
    try world.put(0, "kept", "1")
    try world.settle()
    let backup = try world.backUpServer()
    var cached = EntryAttributes()
    cached.entryClass = .cache
    for number in 0..<300 {
      var batch = OperationBatch()
      try batch.add(.put, key: Array("key \(number)".utf8).rawSpan, value: Array("1".utf8).rawSpan)
      try batch.add(
        .put, key: Array("cached".utf8).rawSpan, value: Array("2".utf8).rawSpan,
        attributes: cached)
      try world.devices[0].engine.commit(batch)
    }
    try world.settle()
    #expect(world.devices[0].session.acknowledged.runs.count == 2)
    try world.restoreServer(backup)
    world.devices[0].session.disconnect()
    try world.step(0)
    #expect(world.devices[0].session.acknowledged.runs.count == 1)
    try world.restart(0)
    #expect(world.devices[0].session.acknowledged.runs.count == 1)
    try world.settle()
    let runs = world.devices[0].session.acknowledged.runs
    try world.restart(0)
    #expect(world.devices[0].session.acknowledged.runs == runs && runs.count > 1)
    #expect(try world.serverState().count == 301)
  }

  @Test("records that make no sense are refused, whatever their bytes", arguments: [1, 2, 3])
  func hostile(seed: UInt64) {
    var random = SeededGenerator(seed: seed)
    var runs = AcknowledgedRuns()
    for number in 1..<40 as Range<UInt64> {
      runs.add(number * 3, at: position(number * 5, epoch: number / 10))
    }
    let good = AcknowledgedRunsCoding.encode(runs.tail[...])
    for _ in 0..<2_000 {
      var bytes = good
      for _ in 0...random.int(below: 4) {
        bytes[random.int(below: bytes.count)] = UInt8(random.int(below: 256))
      }
      if random.chance(0.3) { bytes.removeLast(random.int(below: bytes.count)) }
      guard let read = try? AcknowledgedRuns(decoding: [(number: 0, value: bytes)]) else {
        continue
      }
      _ = read.position(of: 60)
      _ = read.runs
    }
    for bytes in [[], [0] + good.dropFirst()] as [[UInt8]] {
      #expect(throws: FormatError.self) {
        try AcknowledgedRuns(decoding: [(number: 0, value: bytes)])
      }
    }
    let overlap = [(number: 0 as UInt64, value: good), (number: 1 as UInt64, value: good)]
    #expect(throws: FormatError.self) { try AcknowledgedRuns(decoding: overlap) }
    #expect(throws: FormatError.self) {
      try AcknowledgedRuns(decoding: [(number: UInt64.max, value: good)])
    }
  }

  @Test("operations that follow each other here and in the feed are one run, however they came")
  func folded() throws {
    var runs = AcknowledgedRuns()
    let records = Records()
    for sequences in [5..<8, 20..<21, 8..<9, 9..<20] as [Range<UInt64>] {
      records.commit(&runs) { for own in sequences { $0.add(own, at: position(own + 4)) } }
    }
    let one = [Run(first: 5, count: 16, epoch: 7, offset: 9)]
    #expect(try runs.runs == one && records.read().runs == one)
    // Another epoch, and a gap in the feed.
    records.commit(&runs) { $0.add(21, at: position(25, epoch: 8)) }
    records.commit(&runs) { $0.add(22, at: position(27, epoch: 8)) }
    #expect(runs.runs.count == 2 && runs.position(of: 22) == position(27, epoch: 8))
  }

  @Test("edits at the same distance are one run, and one that comes late parts it")
  func distances() throws {
    var runs = AcknowledgedRuns()
    let records = Records()
    for number in 0..<1_000 as Range<UInt64> {
      records.commit(&runs) { $0.add(10 + 3 * number, at: position(7 + 2 * number)) }
    }
    #expect(runs.runs == [Run(first: 10, count: 1_000, epoch: 7, offset: 7, step: 3, stride: 2)])
    records.commit(&runs) { $0.add(11, at: position(9_000)) }
    records.commit(&runs) { $0.add(3_006, at: position(9_001)) }
    for runs in [runs, try records.read()] {
      #expect(runs.runs.count == 5)
      #expect(runs.position(of: 11) == position(9_000))
      #expect(runs.position(of: 12) == nil && runs.position(of: 3_008) == nil)
      for number in 0..<1_000 as Range<UInt64> {
        #expect(runs.position(of: 10 + 3 * number) == position(7 + 2 * number))
      }
    }
    records.commit(&runs) { runs in
      let lost = runs.removeLost { $0.offset <= 1_000 }
      #expect(lost.count == 505 && lost.contains(11))
    }
    #expect(try records.read().position(of: 10 + 3 * 496) == position(999))
  }
}
