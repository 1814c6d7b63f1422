import Testing
import TidemarkTestKit

@testable import TidemarkEngine

@Suite("Cached data in the log")
struct CachedDataTests {
  @Test("cached versions that were replaced go at a compaction though everything is kept")
  func superseded() throws {
    let engine = try TestStore().open()
    try engine.put("mine", "1")
    for i in 1...5 { try engine.cache("theirs", "\(i)") }
    try engine.put("mine", "2")
    let report = try engine.compact()
    #expect(report.droppedEntries == 4)
    #expect(try engine.get("theirs") == "5")
    #expect(try engine.versions("mine") == ["2", "1"])
    #expect(try engine.versions("theirs") == ["5"])
    #expect(try engine.reader.bounds().historyFrom == 1)
    #expect(try engine.compact().segmentsRewritten == 0)
    try engine.close()
  }

  @Test("an eviction takes the value that was meant, and never one that the user owns")
  func evictions() throws {
    let store = TestStore()
    var engine = try store.open()
    try engine.put("mine", "1")
    let old = try engine.cache("theirs", "1")
    let new = try engine.cache("theirs", "2")
    #expect(try engine.evict("mine") == false)
    #expect(try engine.evict("nothing") == false)
    #expect(try engine.evict("theirs", at: old) == false)
    #expect(try engine.get("theirs") == "2")
    #expect(try engine.evict("theirs", at: new))
    #expect(try engine.evict("theirs") == false)
    #expect(try engine.get("theirs") == nil)
    #expect(engine.reader.liveKeys == 1)
    try engine.close()
    engine = try store.open(.write)
    #expect(try engine.get("theirs") == nil && engine.get("mine") == "1")
    try engine.close()
  }

  @Test("versions that a user wrote stay in the history when cached ones around them go")
  func mixed() throws {
    let store = TestStore()
    var engine = try store.open()
    try engine.put("k", "mine 1")
    try engine.cache("k", "theirs 1")
    try engine.cache("k", "theirs 2")
    try engine.put("k", "mine 2")
    try engine.cache("k", "theirs 3")
    try engine.compact()
    #expect(try engine.versions("k") == ["theirs 3", "mine 2", "mine 1"])
    #expect(try engine.evict("k"))
    try engine.compact()
    try engine.close()
    // A log alone tells the same.
    try store.loseRuns()
    engine = try store.open(.write)
    #expect(try engine.get("k") == nil)
    #expect(try engine.versions("k") == ["(gone)", "mine 2", "mine 1"])
    try engine.put("k", "mine 3")
    try engine.compact()
    #expect(try engine.versions("k") == ["mine 3", "mine 2", "mine 1"])
    try engine.close()
    #expect(try store.problems().isEmpty)
  }

  @Test("the newest touch and the value that it renews stay, and when the key was created is told")
  func touches() throws {
    let store = TestStore()
    let engine = try store.open()
    let first = try engine.cache("k", "1")
    let created = try engine.reader.entry(at: first).head.commitTime
    try engine.cache("k", "2")
    store.clock.advance(by: .seconds(5))
    for _ in 0..<4 { try engine.touch("k") }
    let report = try engine.compact()
    #expect(report.droppedEntries == 4)
    #expect(try engine.get("k") == "2")
    #expect(try engine.created("k") == created)
    // Also where the touches lie in a segment that is not compacted yet.
    for _ in 0..<4 { try engine.touch("k") }
    try engine.compact()
    #expect(try engine.get("k") == "2")
    #expect(try engine.created("k") == created)
    try engine.close()
  }

  @Test("an open view keeps the cached versions that it shows")
  func views() throws {
    let engine = try TestStore().open()
    try engine.cache("k", "1")
    let view = try engine.reader.view()
    try engine.cache("k", "2")
    try engine.evict("k")
    #expect(try engine.compact().droppedEntries == 0)
    #expect(try engine.get("k", in: view) == "1")
    withExtendedLifetime(view) {}
    try engine.close()
  }

  @Test("keys that were given up are forgotten by the index, and then by the log")
  func forgotten() throws {
    let store = TestStore()
    var engine = try store.open()
    try engine.put("mine", "1")
    for i in 0..<50 { try engine.cache("k\(i)", "value") }
    for i in 0..<50 { try engine.evict("k\(i)") }
    try engine.writer.flush()
    try engine.checkpointer.writeRun()
    let run = try #require(engine.reader.reading.withLock { $0.index.runs.runs.first })
    #expect(run.header.keys == 1)
    #expect(try engine.compact().droppedEntries == 100)
    try engine.close()
    #expect(try store.problems().isEmpty)
    try store.loseRuns()
    engine = try store.open(.write)
    #expect(try engine.keys() == ["mine"])
    #expect(try engine.status().segments.reduce(0) { $0 + $1.length } < 16_384)
    try engine.close()
  }

  @Test("an eviction stays in the log as long as it hides an older value in another segment")
  func hiddenValues() throws {
    var store = TestStore()
    store.configuration.segmentBytes = 32 << 10
    store.configuration.growthBytes = 4 << 10
    store.configuration.compactsByItself = false
    var engine = try store.open()
    var chance = SeededGenerator(seed: 3)
    func bulk(_ prefix: String, _ count: Int) throws {
      for i in 0..<count {
        try engine.put("\(prefix)\(i)", (0..<30).map { _ in "\(chance.next())" }.joined())
      }
    }
    try engine.cache("k", "1")
    try bulk("mine", 400)
    try engine.writer.sealSegments()
    let oldest = try #require(engine.reader.reading.withLock { $0.segments.first?.id })
    for round in 2...4 {
      try engine.evict("k")
      try engine.writer.flush()
      try engine.checkpointer.writeRun(.whole)
      // In the last round the key stays away.
      if round < 4 { try engine.cache("k", "\(round)") }
      for i in 0..<80 {
        try engine.cache("c\(i % 4)", (0..<30).map { _ in "\(chance.next())" }.joined())
      }
      try engine.writer.sealSegments()
      try engine.writer.flush()
      engine.autoCompactor.setAutomatic(true)
      #expect(try engine.autoCompactor.compactIfWorthwhile())
      engine.autoCompactor.setAutomatic(false)
      #expect(engine.reader.reading.withLock { $0.segments.first?.id } == oldest)
    }
    try engine.close()
    #expect(try store.problems().isEmpty)
    try store.loseRuns()
    engine = try store.open(.write)
    #expect(try engine.get("k") == nil)
    try engine.close()
  }

  @Test("a touch whose value has gone is passed over by those who read the log")
  func lostTouch() throws {
    var store = TestStore()
    store.configuration.segmentBytes = 32 << 10
    let engine = try store.open()
    var chance = SeededGenerator(seed: 4)
    try engine.cache("k", "1")
    for i in 0..<80 {
      try engine.cache("c\(i % 4)", (0..<30).map { _ in "\(chance.next())" }.joined())
    }
    try engine.writer.sealSegments()
    try engine.touch("k")
    try engine.evict("k")
    try engine.writer.flush()
    try engine.checkpointer.writeRun(.whole)
    engine.autoCompactor.setAutomatic(true)
    #expect(try engine.autoCompactor.compactIfWorthwhile())
    #expect(try engine.reader.entryIfKept(at: 1) == nil)
    var cursor = LogCursor(engine.reader, from: 1, through: engine.reader.lastSequence)
    var kinds: [EntryKind] = []
    while let entry = try cursor.next() {
      _ = try engine.reader.info(entry)
      kinds.append(entry.head.kind)
    }
    #expect(kinds.last == .evict && !kinds.contains(.touch))
    try engine.compact()
    try engine.close()
    #expect(try store.problems().isEmpty)
  }

  @Test("a delete that says that it is of cached data is a delete")
  func cachedDelete() throws {
    let store = TestStore()
    var engine = try store.open()
    try engine.put("k", "1")
    var attributes = EntryAttributes()
    attributes.entryClass = .cache
    var batch = OperationBatch()
    try batch.add(.delete, key: bytes("k").rawSpan, attributes: attributes)
    try engine.commit(batch)
    #expect(try engine.get("k") == nil && engine.reader.liveKeys == 0 && engine.keys() == [])
    try engine.close()
    #expect(try store.problems().isEmpty)
    try store.loseRuns()
    engine = try store.open(.write)
    #expect(engine.reader.liveKeys == 0)
    try engine.close()
  }

  @Test("cached data that comes and goes leaves a log of a few segments, by itself")
  func churn() throws {
    var store = TestStore()
    store.configuration.segmentBytes = 64 << 10
    store.configuration.growthBytes = 8 << 10
    store.configuration.compactsByItself = true
    store.configuration.runEveryBytes = 64 << 10
    let engine = try store.open()
    for i in 0..<50 { try engine.put("mine \(i)", String(repeating: "x", count: 100)) }
    var longest = 0
    for i in 0..<20_000 {
      try engine.cache("k\(i)", "\(i) \(i &* 7919) a value of some length, as they are")
      if i >= 100 { try engine.evict("k\(i - 100)") }
      if i % 100 == 99 {
        store.clock.advance(by: .seconds(1))
        longest = max(longest, try engine.status().bytes.log)
      }
    }
    #expect(longest < 2 * store.configuration.segmentBytes)
    #expect(engine.reader.liveKeys == 150)
    #expect(try engine.reader.bounds().historyFrom == 1)
    try engine.close()
  }
}

extension TestStore {
  /// Removes the index of a store that is closed.
  func loseRuns() throws {
    for name in try disk.list(path + "/index") { try disk.remove(path + "/index/" + name) }
  }

  /// The findings of a verification.
  func problems() throws -> [String] {
    try StoreVerifier.verify(path, environment: environment()).findings.map { "\($0)" }
  }
}

extension Engine {
  /// Puts a cached value.
  @discardableResult
  func cache(_ key: String, _ value: String) throws -> UInt64 {
    var attributes = EntryAttributes()
    attributes.entryClass = .cache
    var batch = OperationBatch()
    batch.mayCoverOwned = true
    try batch.add(
      .put, key: bytes(key).rawSpan, value: bytes(value).rawSpan, attributes: attributes)
    return try commit(batch).sequences.lowerBound
  }

  @discardableResult
  func evict(_ key: String, at sequence: UInt64 = 0) throws -> Bool {
    var batch = OperationBatch()
    try batch.addEviction(of: bytes(key).rawSpan, at: sequence)
    return try commit(batch).applied > 0
  }

  /// The values of a key's versions, newest first; touches are left out.
  func versions(_ key: String) throws -> [String] {
    var values: [String] = []
    var walk = try VersionWalk(reader, ofKey: bytes(key).rawSpan)
    while let entry = try walk.next() {
      switch entry.head.kind {
      case .put:
        values.append(
          try reader.withValue(of: entry.sequence) { (value, _) throws(TidemarkError) in
            String(decoding: [UInt8](copying: value), as: UTF8.self)
          })
      case .delete, .evict: values.append("(gone)")
      case .touch, .record: break
      }
    }
    return values
  }

  /// When a key was created, as readers work it out.
  func created(_ key: String) throws -> UInt64 {
    var oldest: UInt64 = 0
    var walk = try VersionWalk(reader, ofKey: bytes(key).rawSpan)
    while let entry = try walk.next(), !entry.head.kind.removes {
      if entry.head.created != 0 { return entry.head.created }
      if entry.head.kind != .touch { oldest = entry.head.commitTime }
    }
    return oldest
  }
}
