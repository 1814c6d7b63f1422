import Testing
import Tidemark
import TidemarkEngine

@testable import TidemarkSync

/// Costs in bytes and commits, which no load of the machine changes.
@Suite("The cost of replication in the log")
struct CostTests {
  private struct Cost {
    /// Commits of the session: each writes how far it is.
    var commits = 0
    /// Bytes of keys and values of records.
    var bytes = 0
  }

  /// The cost of the records in a device's log behind a sequence.
  private func cost(_ world: SyncWorld, after sequence: UInt64) throws -> Cost {
    let engine = world.devices[0].engine
    var cost = Cost()
    var cursor = LogCursor(
      engine.reader, from: sequence + 1, through: engine.reader.lastSequence, includesRecords: true)
    while let entry = try cursor.next() {
      guard entry.head.kind == .record else { continue }
      let type = try entry.attributes().recordType
      let isStep = type == RecordType.pin.rawValue
      if isStep { cost.commits += 1 }
      // Lists of records come now and then, whoever wrote these.
      guard isStep || type >= RecordType.peerProgress.rawValue else { continue }
      cost.bytes += entry.key.count + entry.head.valueLength
    }
    return cost
  }

  @Test("conflicts are decided many at a time, and cost bytes in proportion to their number")
  func conflicts() throws {
    func cost(of conflicts: Int) throws -> Cost {
      let world = try SyncWorld(resolver: .mergeFields())
      for number in 0..<conflicts { try world.put(1, "key \(number)", #"{"a":1}"#) }
      try world.settle(only: 1)
      for number in 0..<conflicts { try world.put(0, "key \(number)", #"{"b":2}"#) }
      let before = world.devices[0].engine.reader.lastSequence
      // The server says so first: what stands there has to be asked for.
      world.devices[0].session.disconnect()
      while let call = try world.devices[0].session.next(.push) {
        try world.devices[0].session.receive(try world.answer(call))
      }
      #expect(world.devices[0].session.totals.conflicts == conflicts)
      #expect(world.devices[0].session.totals.merged == conflicts)
      #expect(try world.get(0, "key 7") == #"{"b":2,"a":1}"#)
      try world.settle()
      try world.expectEqual()
      return try self.cost(world, after: before)
    }
    let (few, many) = (try cost(of: 64), try cost(of: 512))
    #expect(many.commits < 40, "\(many)")
    #expect(many.bytes < 10 * few.bytes, "\(few), \(many)")
  }

  @Test("conflicts over large values are decided in several commits, also when a pull finds them")
  func largeConflicts() throws {
    let world = try SyncWorld(resolver: .mergeFields())
    let text = String(repeating: "x", count: 2_000)
    for number in 0..<20 { try world.put(1, "key \(number)", #"{"a":1}"#) }
    try world.settle(only: 1)
    for number in 0..<20 { try world.put(0, "key \(number)", "{\"b\":\"\(text)\"}") }
    let before = world.devices[0].engine.reader.lastSequence
    let session = world.devices[0].session
    session.bytesTogether = 8_000
    while session.totals.conflicts < 20, try world.step(0) {}
    #expect(session.totals.merged == 20 && session.totals.conflicts == 20)
    #expect(try cost(world, after: before).commits > 4)
    try world.settle()
    try world.expectEqual()
  }

  @Test("positions of edits that a compaction has dropped are forgotten, in memory and in the log")
  func prunedPositions() throws {
    let world = try SyncWorld(devices: 1)
    func edit(_ edits: Range<Int>) throws {
      for number in edits {
        try world.put(0, "key \(number % 4)", "\(number)")
        // At uneven distances.
        if number % 3 == 0 { try world.put(0, "other \(number % 4)", "\(number)") }
        if number % 2 == 0 { try world.put(0, "further \(number % 4)", "\(number)") }
        try world.settle()
      }
    }
    func records() throws -> Int {
      try PeerRecords(ReplicationLog(world.devices[0].engine), peer: Array("server".utf8))
        .savedState()?.acknowledged.runs
        .count ?? 0
    }
    try edit(0..<200)
    #expect(try records() >= 150)
    try world.devices[0].engine.compact(CompactionOptions(dropHistory: true))
    try world.restart(0)
    try edit(200..<201)
    #expect(try records() < 10)
    #expect(world.devices[0].session.acknowledged.runs.count < 10)
    // They are based upon what stands there all the same.
    try edit(201..<210)
    #expect(world.devices[0].session.totals.conflicts == 0)
    try world.expectEqual()
  }

  @Test("an edit that is sent as it is made costs no more after many others")
  func liveEdits() throws {
    let world = try SyncWorld(devices: 1)
    func bytesPerEdit(_ edits: Range<Int>) throws -> Int {
      let before = world.devices[0].engine.reader.lastSequence
      for number in edits {
        try world.put(0, "key \(number % 50)", "edit \(1_000_000 + number)")
        while try world.step(0) {}
      }
      let cost = try cost(world, after: before)
      #expect(cost.commits <= 3 * edits.count)
      return cost.bytes / edits.count
    }
    // The names of the last sixteen batches are kept.
    _ = try bytesPerEdit(0..<16)
    let first = try bytesPerEdit(16..<80)
    let later = try bytesPerEdit(80..<144)
    // Numbers have grown by a byte here and there.
    #expect(later <= first + 8, "\(first), \(later)")
    try world.settle()
    try world.expectEqual()
  }
}
