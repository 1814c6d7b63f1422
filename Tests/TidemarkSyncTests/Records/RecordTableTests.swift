import Testing
import TidemarkTestKit

@testable import TidemarkEngine
@testable import TidemarkSync
@testable import TidemarkSyncServer

@Suite("Records and where they stand")
struct RecordTableTests {
  private let disk = SimulatedFileSystem(seed: 3)
  private let type = RecordType(rawValue: 40)

  private func open(_ seed: UInt64 = 5) throws -> Engine {
    var configuration = EngineConfiguration()
    configuration.doesBackgroundWorkInline = true
    return try Engine.open(
      "store", configuration: configuration,
      environment: EngineEnvironment(
        fileSystem: disk, clock: ManualClock(), random: SeededRandom(seed: seed)))
  }

  private func write(
    _ records: [(RecordType, String, String)], to engine: Engine, _ table: inout RecordTable
  ) throws {
    var batch = OperationBatch()
    for (type, key, value) in records {
      try RecordTable.add(type, key: Array(key.utf8), value: Array(value.utf8), to: &batch)
    }
    try table.note(batch, try engine.commit(batch))
  }

  private func fill(_ engine: Engine, _ count: Int) throws {
    var batch = OperationBatch()
    for i in 0..<count {
      try batch.add(.put, key: Array("fill\(i % 100)".utf8).rawSpan, value: [1, 2].rawSpan)
    }
    try engine.commit(batch)
  }

  private func text(_ table: RecordTable, _ key: String, _ type: RecordType? = nil) throws
    -> String?
  {
    try table.value(of: type ?? self.type, key: Array(key.utf8)).map {
      String(decoding: $0, as: UTF8.self)
    }
  }

  @Test("the newest record of every name is found, also after reopening")
  func newest() throws {
    var engine = try open()
    var table = try RecordTable(engine.reader)
    try write([(type, "a", "1"), (type, "b", "1")], to: engine, &table)
    try fill(engine, 5000)
    try write([(type, "a", "2"), (RecordType(rawValue: 41), "a", "x")], to: engine, &table)
    for _ in 0..<2 {
      #expect(try text(table, "a") == "2" && text(table, "b") == "1" && text(table, "c") == nil)
      #expect(try text(table, "a", RecordType(rawValue: 41)) == "x")
      #expect(table.keys(of: type) == [Array("a".utf8), Array("b".utf8)])
      try engine.close()
      engine = try open(6)
      table = try RecordTable(engine.reader)
    }
    try engine.close()
  }

  @Test("an empty value takes the name away, with and without a checkpoint in between")
  func removal() throws {
    for checkpoints in [false, true] {
      let engine = try open()
      var table = try RecordTable(engine.reader)
      try write([(type, "a", "1"), (type, "b", "1")], to: engine, &table)
      if checkpoints { try table.writeCheckpoint(in: engine) }
      try write([(type, "a", "")], to: engine, &table)
      #expect(try text(table, "a") == nil)
      if checkpoints { try table.writeCheckpoint(in: engine) }
      let again = try RecordTable(engine.reader)
      #expect(try text(again, "a") == nil && text(again, "b") == "1" && again.count == 1)
      try engine.close()
    }
  }

  @Test("opening reads back to the last checkpoint only, and knows all the same")
  func checkpoints() throws {
    let engine = try open()
    var table = try RecordTable(engine.reader)
    try write((0..<300).map { (type, "k\($0)", "\($0)") }, to: engine, &table)
    try fill(engine, 9000)
    #expect(try table.writeCheckpoint(in: engine))
    try write([(type, "k7", "new"), (type, "later", "1")], to: engine, &table)
    let again = try RecordTable(engine.reader)
    #expect(again.listedThrough == table.listedThrough && again.listedThrough > 9000)
    #expect(again.count == 301 && again.through == engine.reader.lastSequence)
    #expect(try text(again, "k7") == "new" && text(again, "k8") == "8")
    #expect(try text(again, "later") == "1")
    try engine.close()
  }

  @Test("a record that others write between looking and listing is listed the next time")
  func others() throws {
    let engine = try open()
    var table = try RecordTable(engine.reader)
    var other = try RecordTable(engine.reader)
    try write([(type, "a", "1")], to: engine, &table)
    try write([(type, "b", "1")], to: engine, &other)
    try write([(type, "c", "1")], to: engine, &table)
    #expect(table.count == 3, "a gap in the sequences is read")
    try write([(type, "d", "1")], to: engine, &other)
    try table.writeCheckpoint(in: engine)
    #expect(try RecordTable(engine.reader).count == 4)
    try other.catchUp()
    #expect(other.count == 4)
    try engine.close()
  }

  @Test("compaction that drops history keeps what is listed where it was")
  func compaction() throws {
    var engine = try open()
    var table = try RecordTable(engine.reader)
    for round in 0..<4 {
      try write([(type, "a", "\(round)"), (type, "r\(round)", "x")], to: engine, &table)
      try fill(engine, 700)
      try table.writeCheckpoint(in: engine)
      try engine.compact(CompactionOptions(dropHistory: true))
      #expect(try text(table, "a") == "\(round)" && text(table, "r0") == "x")
      try engine.close()
      engine = try open(UInt64(10 + round))
      table = try RecordTable(engine.reader)
      #expect(table.count == round + 2 && table.unreadableCheckpoints == 0)
      #expect(try text(table, "a") == "\(round)" && text(table, "r0") == "x")
    }
    try engine.close()
  }

  @Test("a checkpoint is due after a thousand records, and less often when there are many names")
  func due() throws {
    let engine = try open()
    var table = try RecordTable(engine.reader)
    let many = (0..<999).map { (type, "k\($0 % 10)", "\($0)") }
    try write(many, to: engine, &table)
    #expect(!table.isCheckpointDue)
    try write([(type, "one", "more")], to: engine, &table)
    #expect(table.isCheckpointDue)
    try table.writeCheckpoint(in: engine)
    #expect(!table.isCheckpointDue)
    try write((0..<3000).map { (type, "n\($0)", "x") }, to: engine, &table)
    #expect(!table.isCheckpointDue, "as many as there are names")
    try fill(engine, 65_536)
    try table.catchUp()
    #expect(table.isCheckpointDue)
    try table.writeCheckpoint(in: engine)
    #expect(!(try RecordTable(engine.reader).isCheckpointDue))
    try engine.close()
  }

  @Test("checkpoints that cannot be read, or speak of what cannot be, are passed over")
  func unreadable() throws {
    let engine = try open()
    var table = try RecordTable(engine.reader)
    try write([(type, "a", "1"), (type, "b", "2")], to: engine, &table)
    try table.writeCheckpoint(in: engine)
    let foreign: [[UInt8]] = [
      [9, 1, 2], [1], [1, 0xff, 0xff, 0xff, 0xff, 0x0f], [1, 3, 0xff, 0xff, 0x7f],
      RecordCheckpoint(through: 1 << 40, rows: []).encoded,
      RecordCheckpoint(
        through: 2, rows: [.init(name: RecordName(.loser, key: []), sequence: 1)]
      ).encoded,
      RecordCheckpoint(through: 1, rows: []).encoded + [0],
    ]
    for value in foreign {
      var batch = OperationBatch()
      try RecordTable.add(.checkpoint, key: [], value: value, to: &batch)
      try engine.commit(batch)
    }
    let again = try RecordTable(engine.reader)
    #expect(again.unreadableCheckpoints == foreign.count)
    #expect(try text(again, "a") == "1" && text(again, "b") == "2")
    try engine.close()
  }

  @Test("a list that names what is not there ends in an error, not in another record's value")
  func lying() throws {
    let engine = try open()
    var table = try RecordTable(engine.reader)
    try write([(type, "a", "1")], to: engine, &table)
    try fill(engine, 3)
    let rows = [
      RecordCheckpoint.Row(name: RecordName(type, key: [1]), sequence: 1),
      RecordCheckpoint.Row(name: RecordName(type, key: [2]), sequence: 3),
      RecordCheckpoint.Row(name: RecordName(RecordType(rawValue: 41), key: [97]), sequence: 1),
    ]
    var batch = OperationBatch()
    try RecordTable.add(
      .checkpoint, key: [], value: RecordCheckpoint(through: 4, rows: rows).encoded, to: &batch)
    try engine.commit(batch)
    let again = try RecordTable(engine.reader)
    for row in rows {
      #expect(throws: TidemarkError.self) {
        _ = try again.value(of: row.name.type, key: row.name.key)
      }
    }
    try engine.close()
  }

  @Test("any bytes decode to a list or to an error, and lists come back")
  func hostileLists() throws {
    for seed in UInt64(1)...300 {
      var chance = SeededGenerator(seed: seed)
      let through = UInt64(chance.int(in: 1000...2000))
      let rows = (0..<chance.int(below: 20)).map { _ in
        RecordCheckpoint.Row(
          name: RecordName(
            RecordType(rawValue: UInt32(chance.int(in: 3...255))),
            key: chance.bytes(chance.int(below: 30))),
          sequence: UInt64(chance.int(in: 1...1000)))
      }
      let list = RecordCheckpoint(through: through, rows: rows)
      var bytes = list.encoded
      #expect(
        try RecordCheckpoint(decoding: bytes.rawSpan, at: through + 1) == list, "seed \(seed)")
      bytes[chance.int(below: bytes.count)] ^= UInt8(1 << chance.int(below: 8))
      if chance.chance(0.5) { bytes.removeLast(chance.int(below: bytes.count)) }
      _ = try? RecordCheckpoint(decoding: bytes.rawSpan, at: through + 1)
    }
  }
}

extension RecordTable {
  @discardableResult
  mutating func writeCheckpoint(in engine: Engine) throws(TidemarkError) -> Bool {
    try writeCheckpoint { (batch) throws(TidemarkError) in try engine.commit(batch) }
  }
}
