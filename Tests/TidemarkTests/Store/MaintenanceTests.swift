import Testing
import Tidemark
import TidemarkEngine
import TidemarkTestKit

@Suite("Verification and repair by a program")
struct MaintenanceTests {
  private let machine = Machine()

  /// Fills a store with entries of some batches and closes it.
  private func fill() throws {
    let store = try machine.open()
    for batch in 0..<4 {
      try store.blocking.write { changes in
        for i in 0..<500 {
          try changes.put("key/\(batch)/\(i)", "value \(i) of batch \(batch), \(i * 7919)")
        }
      }
    }
    try store.blocking.flush()
    try store.blocking.close()
  }

  private func readStatus() throws -> Store.Status {
    let store = try machine.open(.readOnly)
    return try store.status
  }

  /// Damages the log in the middle, and says where.
  private func damage() throws -> String {
    let file = try #require(try readStatus().segments.first { $0.sequences.count > 1 }).file
    let log = try machine.disk.open("store/" + file, .readWrite)
    defer { log.close() }
    let offset = try log.length() / 3
    let inverted = try log.read(4, at: offset).map { ~$0 }
    try log.writeFully(inverted.rawSpan, at: offset)
    return file
  }

  @Test("a whole store has no findings, also while it is open")
  func healthy() async throws {
    try fill()
    let store = try machine.open()
    try store.blocking.put("one", "more", durability: .durable)
    let report = try await Store.verify(at: "store", configuration: machine.configuration())
    #expect(report.isHealthy)
    #expect(report.entries == 2_001)
    #expect(report.lastSequence == 2_001)
    try store.blocking.close()
    let copy = try await Store.repair(
      at: "store", into: "copy", configuration: machine.configuration())
    #expect(copy.isComplete && copy.entries == 2_001)
  }

  @Test("damage is found where it is, and on record only where that is asked for")
  func damaged() throws {
    try fill()
    let file = try damage()
    let configuration = machine.configuration()
    let first = try Store.verifyBlocking(
      at: "store", configuration: configuration, recordsDamage: false)
    let finding = try #require(first.findings.first)
    #expect(finding.file == file)
    #expect(finding.isDamageToAcknowledged)
    let sequences = try #require(finding.sequences)
    #expect(sequences.upperBound <= 2_000)
    #expect(!first.isRecorded)
    #expect(try readStatus().damage == [])
    let second = try Store.verifyBlocking(at: "store", configuration: configuration)
    #expect(second.findings == first.findings)
    #expect(second.isRecorded)
    #expect(try readStatus().damage.count == 1)
    #expect(code { _ = try machine.open(.write) } == .damaged)
  }

  @Test("a repair brings into a new store what can be read, and says what is lost")
  func repaired() throws {
    try fill()
    _ = try damage()
    let configuration = machine.configuration()
    let report = try Store.repairBlocking(at: "store", into: "new", configuration: configuration)
    #expect(!report.isComplete)
    let lost = report.lostSequences.reduce(0) { $0 + $1.count }
    #expect(lost > 0)
    #expect(report.entries == 2_000 - lost)
    let store = try Store.openBlocking(at: "new", configuration: configuration)
    let count = try store.count()
    #expect(count == report.entries)
    var rows = try store.entries()
    while let entry = try rows.next() {
      #expect(!report.lostSequences.contains { $0.contains(entry.sequence) })
    }
    try store.blocking.put("goes", "on")
    #expect(store.lastSequence == 2_001)
    try store.blocking.close()
    let again = try Store.verifyBlocking(at: "new", configuration: configuration)
    #expect(again.isHealthy)
    #expect(again.holes == report.lostSequences)
  }

  @Test("nothing is mended where there is no store, and nothing is written over one")
  func refusals() throws {
    try fill()
    let configuration = machine.configuration()
    for path in ["nowhere", ""] {
      #expect(
        code { _ = try Store.verifyBlocking(at: path, configuration: configuration) } != nil)
      #expect(
        code { _ = try Store.repairBlocking(at: path, into: "new", configuration: configuration) }
          != nil)
    }
    #expect(
      code {
        _ = try Store.repairBlocking(at: "store", into: "store", configuration: configuration)
      } == .storeExists)
  }

  @Test("an index that is made anew knows what the old one knew")
  func reindexed() throws {
    try fill()
    let store = try machine.open()
    let before = try store.state()
    try store.blocking.rebuildIndex()
    let after = try store.state()
    #expect(after == before)
    let status = try store.status
    #expect(status.runs.map(\.sequence) == [2_000])
    try store.blocking.close()
    let reopened = try machine.open(.readOnly).state()
    #expect(reopened == before)
    let files = machine.disk.files()
    #expect(code { try store.blocking.rebuildIndex() } == .closed)
    #expect(code { try machine.open(.readOnly).blocking.rebuildIndex() } == .readOnly)
    #expect(machine.disk.files() == files)
    #expect(try readStatus().isClosedCleanly)
  }
}
