import Testing
import TidemarkTestKit

@testable import TidemarkEngine

@Suite("Repairing, in the corners")
struct RepairCornersTests {
  @Test("an entry that an interrupted compaction dropped stays dropped, with and without MANIFEST")
  func interruptedCompaction() throws {
    let disk = MemoryFileSystem()
    let engine = try StoreFiles.open(disk, .create)
    for number in 0..<30 { try engine.put("key-\(number)", "old") }
    try engine.writer.sealSegments()
    for number in 0..<20 { try engine.delete("key-\(number)") }
    for number in 20..<25 { try engine.put("key-\(number)", "new") }
    try engine.writer.sealSegments()
    let inputs = try StoreFiles(disk)
    var options = CompactionOptions()
    options.dropHistory = true
    try engine.compact(options)
    try engine.put("last", "one")
    let expected = try ExpectedStore(engine)
    try engine.close()
    let files = try StoreFiles(disk)
    #expect(expected.entries.count == 11)
    // The inputs, all or some, were not removed yet.
    let old = Array(inputs.segments.prefix(2))
    for left in [old, [old[0]], [old[1]]] {
      var mixed = files
      for name in left { mixed.files[name] = inputs.files[name] }
      for files in [mixed, mixed.removing("MANIFEST.0", "MANIFEST.1")] {
        let disk = try files.disk()
        let comment: Comment = "left: \(left), \(files.files.keys.sorted())"
        let report = try RepairTests.expectAllTheRest(disk, expected, comment)
        #expect(report.isComplete, comment)
        let target = try StoreFiles(disk, path: RepairTests.target).manifest()
        #expect(target.historyFrom >= 50 && target.historyFrom <= 56, comment)
      }
    }
  }

  @Test("inputs that a compaction left behind fill in for what is damaged in its output")
  func rescue() throws {
    let disk = MemoryFileSystem()
    let engine = try StoreFiles.open(disk, .create)
    try SampleStore.fill(engine, keys: 20, rounds: 2, largest: 500)
    try engine.writer.sealSegments()
    let inputs = try StoreFiles(disk)
    try engine.compact()
    let expected = try ExpectedStore(engine)
    try engine.close()
    var files = try StoreFiles(disk)
    let output = try #require(files.segments.first)
    for offset in 8300..<8900 { files.files[output]?[offset] ^= 0xff }
    let lossy = try RepairTests.expectAllTheRest(try files.disk(), expected, "output alone")
    #expect(!lossy.isComplete)
    for name in inputs.segments { files.files[name] = inputs.files[name] }
    let report = try RepairTests.expectAllTheRest(try files.disk(), expected, "with inputs")
    #expect(report.isComplete && report.lost.isEmpty)
  }

  @Test("the last batch of a killed writer is left out when it is not whole")
  func killed() throws {
    let disk = MemoryFileSystem()
    let engine = try StoreFiles.open(disk, .create)
    try engine.put("a", "1")
    var batch = OperationBatch()
    let value = [UInt8](repeating: 7, count: 300_000)
    for part in 0..<8 {
      try batch.add(.put, key: bytes("part-\(part)").rawSpan, value: value.rawSpan)
    }
    try engine.commit(batch)
    let expected = try ExpectedStore(engine)
    let files = try StoreFiles(disk)
    try engine.close()
    let name = files.segments[0]
    for removed in [[], ["MANIFEST.0", "MANIFEST.1"]] {
      var whole = files
      for manifest in removed { whole = whole.removing(manifest) }
      let report = try RepairTests.expectAllTheRest(try whole.disk(), expected, "whole")
      #expect(report.entries == 9)
      let used = try #require(whole.files[name]?.lastIndex { $0 != 0 })
      let cut = whole.cutting(name, to: used - 10)
      let disk = try cut.disk()
      let half = try RepairTests.repair(disk)
      #expect(half.entries == 1 && half.lastSequence == 1)
      #expect(half.notes.contains { $0.contains("never finished") || $0.contains("torn") })
      #expect(try StoreFiles.verify(disk, path: RepairTests.target).isHealthy)
    }
  }

  @Test("a read that needs what was lost fails instead of answering wrongly")
  func holes() throws {
    let disk = MemoryFileSystem()
    let engine = try StoreFiles.open(disk, .create)
    let first = try engine.put("key", String(repeating: "one ", count: 50))
    let second = try engine.put("key", String(repeating: "two ", count: 50))
    let third = try engine.put("key", "three")
    try engine.close()
    let files = try StoreFiles(disk)
    let name = files.segments[0]
    let text = try #require(files.files[name])
    let place = try #require(
      (0..<text.count - 8).first { text[$0..<($0 + 8)].elementsEqual(bytes("two two ")) })
    let damaged = try files.flipping(bit: 0, of: place + 20, in: name).disk()
    let report = try RepairTests.repair(damaged)
    #expect(report.lost.ranges == [second...second])
    #expect(report.losses.map(\.keys) == [[bytes("key")]])
    let repaired = try StoreFiles.open(damaged, .write, path: RepairTests.target)
    #expect(try repaired.get("key") == "three")
    #expect(throws: TidemarkError.self) {
      try repaired.reader.history.versions(ofKey: bytes("key").rawSpan)
    }
    #expect(throws: TidemarkError.self) {
      try repaired.get("key", in: try repaired.reader.view(at: second))
    }
    #expect(try repaired.get("key", in: try repaired.reader.view(at: third)) == "three")
    _ = first
    try repaired.close()
    // A second repair keeps the hole.
    let again = try StoreRepair.repair(
      from: RepairTests.target, into: "again", environment: StoreFiles.environment(damaged))
    #expect(again.isComplete)
    #expect(try StoreFiles(damaged, path: "again").manifest().damage.count == 1)
  }

  @Test("a repair keeps every accepted loss on record, also when it has to join records")
  func manyHoles() throws {
    let store = TestStore()
    let engine = try store.open()
    try engine.put("a", "1")
    try engine.close()
    let manifests = ManifestStore(store.disk, storePath: store.path)
    var manifest = try #require(try manifests.load()).manifest
    manifest.damage = (0..<UInt64(Limits.damageRecords)).map { number in
      Manifest.Damage(
        state: .accepted, segmentID: 0, offset: 0, length: 0, firstSequence: 10 + 2 * number,
        lastSequence: 10 + 2 * number, reason: [])
    }
    try manifests.update(&manifest)
    _ = try StoreRepair.repair(
      from: store.path, into: "/repaired", environment: store.environment())
    let damage = try StoreFiles(store.disk, path: "/repaired").manifest().damage
    #expect(damage.count <= Limits.damageRecords / 2 && damage.allSatisfy { $0.state == .accepted })
    for record in manifest.damage {
      #expect(
        damage.contains { ($0.firstSequence...$0.lastSequence).contains(record.firstSequence) })
    }
  }

  @Test("targets that exist and sources in use are refused, and nothing is left behind")
  func refusals() throws {
    let (files, _) = try SampleStore.small()
    let disk = try files.disk()
    func code() -> TidemarkError.Code? {
      do {
        _ = try RepairTests.repair(disk)
        return nil
      } catch { return (error as? TidemarkError)?.code }
    }
    let engine = try StoreFiles.open(disk, .write)
    #expect(code() == .locked)
    try engine.close()
    try disk.createDirectory(RepairTests.target)
    try disk.open(RepairTests.target + "/mine", .create).close()
    #expect(code() == .storeExists)
    try disk.remove(RepairTests.target + "/mine")
    #expect(code() == nil)
    #expect(code() == .storeExists)
  }

  @Test("pages that the disk cannot read cost what stands in them")
  func unreadable() throws {
    let (files, expected) = try SampleStore.large()
    let name = files.segments[0]
    let page = try files.middle(of: name) / 4096 * 4096
    let disk = FailingPages(try files.disk(), file: name, pages: [0, page])
    let found = try StoreFiles.verify(disk)
    #expect(found.findings.contains { $0.file == name && $0.offset == 0 })
    #expect(found.findings.contains { $0.file == name && $0.offset > 0 })
    let report = try RepairTests.expectAllTheRest(disk, expected, "two pages")
    #expect(!report.lost.isEmpty && report.lost.count < 1000)
  }
}
