import Testing
import TidemarkTestKit

@testable import TidemarkEngine

struct EngineTests {
  @Test("a value that was put is read back, before and after reopening")
  func roundTrip() throws {
    let store = TestStore()
    let engine = try store.open()
    try engine.put("a", "one")
    try engine.put("b", "two", labels: ["x", "y"])
    try engine.put("a", "three")
    #expect(try engine.get("a") == "three")
    #expect(try engine.get("b") == "two")
    #expect(try engine.get("c") == nil)
    #expect(engine.reader.lastSequence == 3)
    try engine.close()
    let again = try store.open()
    #expect(try again.get("a") == "three")
    #expect(try again.get("b") == "two")
    #expect(again.reader.lastSequence == 3)
    #expect(again.reader.liveKeys == 2)
    try again.close()
  }

  @Test("an own time with more than a second of nanoseconds is refused, not written")
  func impossibleTime() throws {
    let engine = try TestStore().open()
    var attributes = EntryAttributes()
    attributes.time = Timestamp(seconds: 1)
    attributes.time?.nanoseconds = 1_000_000_000
    var batch = OperationBatch()
    #expect(throws: TidemarkError.self) {
      try batch.add(.put, key: [1].rawSpan, value: [1].rawSpan, attributes: attributes)
    }
    attributes.time?.nanoseconds = 999_999_999
    try batch.add(.put, key: [1].rawSpan, value: [1].rawSpan, attributes: attributes)
    try engine.commit(batch)
    #expect(try engine.reader.entry(at: 1).attributes().time == attributes.time)
    try engine.close()
  }

  @Test("a killed process loses nothing that was buffered")
  func kill() throws {
    let store = TestStore()
    let engine = try store.open()
    for i in 0..<100 { try engine.put("key\(i % 40)", "value \(i)") }
    store.disk.kill()
    store.disk.restart()
    let again = try store.open()
    #expect(again.reader.lastSequence == 100)
    #expect(again.reader.liveKeys == 40)
    #expect(try again.get("key39") == "value 79")
    #expect(try again.get("key0") == "value 80")
    try again.put("more", "x")
    #expect(again.reader.lastSequence == 101)
    try again.close()
  }

  @Test("a store with a feature that only writers must know opens for reading, not for writing")
  func readOnlyFeature() throws {
    let store = TestStore()
    let engine = try store.open()
    try engine.put("a", "one")
    try engine.close()
    let manifests = ManifestStore(store.disk, storePath: store.path)
    var manifest = try #require(try manifests.load()).manifest
    manifest.readOnlyFeatures = 1 << 31
    try manifests.update(&manifest)
    let error = #expect(throws: TidemarkError.self) { try store.open(.write) }
    #expect(error?.code == .formatTooNew)
    let reader = try store.open(.readOnly)
    #expect(try reader.get("a") == "one")
    try reader.close()
    #expect(try #require(try manifests.load()).manifest == manifest)
  }

  @Test("a copy of MANIFEST by a later version refuses the store, though the other is damaged")
  func laterVersionBesideDamage() throws {
    let store = TestStore()
    try store.open().close()
    let paths = StoreLayout.manifests.map { store.path + "/" + $0 }
    var later = ByteWriter()
    later.raw(try #require(store.disk.contents(of: paths[0])))
    later.patch(u64: 0, at: 32)
    later.patch(u32: UInt32(FormatConstants.major) + 1, at: 8)
    later.patch(u64: XXH64.hash(later.bytes.rawSpan), at: 32)
    store.disk.overwrite(paths[0], at: 0, with: later.bytes)
    store.disk.overwrite(paths[1], at: 0, with: [1, 2, 3])
    let error = #expect(throws: TidemarkError.self) { try store.open() }
    #expect(error?.code == .formatTooNew)
  }

  @Test("a compaction keeps the newest of the engine's own records of every type and key")
  func records() throws {
    let store = TestStore()
    let engine = try store.open()
    for i in 0..<4 {
      for (type, key) in [(1, "x"), (1, "y"), (2, "x")] as [(UInt32, String)] {
        var attributes = EntryAttributes()
        attributes.recordType = type
        var batch = OperationBatch()
        try batch.add(
          .record, key: bytes(key).rawSpan, value: bytes("\(key)\(type) \(i)").rawSpan,
          attributes: attributes)
        try engine.commit(batch)
      }
    }
    try engine.put("a", "1")
    try engine.compact()
    try engine.compact()
    var found: [String] = []
    var cursor = LogCursor(
      engine.reader, from: 1, through: engine.reader.lastSequence, includesRecords: true)
    while let entry = try cursor.next() {
      try engine.reader.withValue(of: entry.sequence) { (value, _) throws(TidemarkError) in
        found.append(String(decoding: [UInt8](copying: value), as: UTF8.self))
      }
    }
    #expect(found == ["x1 3", "y1 3", "x2 3", "1"])
    #expect(engine.reader.lastSequence == 13)
    try engine.close()
    let report = try StoreVerifier.verify(store.path, environment: store.environment())
    #expect(report.findings.isEmpty)
  }

  @Test("deleting an absent key says no and makes no entry")
  func deleteAbsent() throws {
    let engine = try TestStore().open()
    #expect(try engine.delete("nothing") == false)
    #expect(engine.reader.lastSequence == 0)
    try engine.put("a", "1")
    #expect(try engine.delete("a"))
    #expect(try engine.get("a") == nil)
    #expect(engine.reader.liveKeys == 0)
    try engine.close()
  }

  @Test("a view shows the store as it was")
  func views() throws {
    let engine = try TestStore().open()
    try engine.put("a", "1", labels: ["l"])
    try engine.put("b", "2", labels: ["l"])
    let view = try engine.reader.view()
    try engine.put("a", "3", labels: ["m"])
    try engine.delete("b")
    try engine.put("c", "4", labels: ["l"])
    #expect(try engine.get("a", in: view) == "1")
    #expect(try engine.get("b", in: view) == "2")
    #expect(try engine.get("c", in: view) == nil)
    #expect(try engine.keys(in: view) == ["a", "b"])
    var query = ScanQuery()
    query.labels = LabelQuery(all: [bytes("l")])
    #expect(try engine.keys(query, in: view) == ["a", "b"])
    #expect(try engine.keys(query) == ["c"])
    #expect(
      try engine.reader.history.versions(ofKey: bytes("a").rawSpan).map(\.sequence) == [3, 1])
    try engine.close()
  }

  @Test("large values span blocks and come back whole")
  func largeValues() throws {
    let store = TestStore()
    let engine = try store.open()
    let large = String(repeating: "0123456789abcdef", count: 10_000)
    try engine.put("large", large)
    try engine.put("small", "s")
    #expect(try engine.get("large") == large)
    try engine.close()
    let again = try store.open()
    #expect(try again.get("large") == large)
    #expect(try again.get("small") == "s")
    try again.close()
  }

  @Test("a touch keeps the value and renews the entry")
  func touching() throws {
    let store = TestStore()
    let engine = try store.open()
    try engine.put("a", "1", labels: ["l"])
    #expect(try engine.touch("a"))
    #expect(try engine.touch("a"))
    #expect(try engine.touch("b") == false)
    #expect(try engine.get("a") == "1")
    store.disk.kill()
    store.disk.restart()
    let again = try store.open()
    #expect(try again.get("a") == "1")
    #expect(try again.touch("a"))
    let entry = try again.reader.entry(at: 4)
    #expect(try again.reader.info(entry).valueSequence == 1)
    #expect(try again.reader.info(entry).labels == [bytes("l")])
    try again.close()
  }

  @Test("compaction that drops history keeps the last state")
  func compaction() throws {
    let store = TestStore()
    let engine = try store.open()
    for i in 0..<500 { try engine.put("key\(i % 50)", "value \(i)", labels: ["l\(i % 3)"]) }
    for i in 0..<10 { try engine.delete("key\(i)") }
    let before = try engine.keys()
    let report = try engine.compact(CompactionOptions(dropHistory: true))
    #expect(report.droppedEntries == 460)
    #expect(report.droppedTombstones == 10)
    #expect(try engine.keys() == before)
    #expect(try engine.get("key49") == "value 499")
    #expect(throws: TidemarkError.self) { try engine.reader.view(at: 100) }
    try engine.close()
    let again = try store.open()
    #expect(try again.keys() == before)
    #expect(try again.get("key49") == "value 499")
    try again.put("key1", "new")
    #expect(try again.get("key1") == "new")
    try again.close()
  }

  @Test("compaction that keeps everything keeps every view")
  func compactionKeepingAll() throws {
    let engine = try TestStore().open()
    for i in 1...300 { try engine.put("key\(i % 20)", "value \(i)") }
    try engine.compact()
    for sequence in stride(from: UInt64(1), through: 300, by: 17) {
      let view = try engine.reader.view(at: sequence)
      let key = "key\(sequence % 20)"
      #expect(try engine.get(key, in: view) == "value \(sequence)")
    }
    try engine.close()
  }
}
