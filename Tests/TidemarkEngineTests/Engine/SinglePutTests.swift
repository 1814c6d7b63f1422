import Testing
import TidemarkTestKit

@testable import TidemarkEngine

@Suite("Puts and deletes of one key") struct SinglePutTests {
  /// Makes up an entry; long ones are rare.
  private func draw(_ random: inout SeededGenerator) -> (key: [UInt8], value: [UInt8]?) {
    let keyBytes = Int.random(in: 0..<40, using: &random) == 0 ? 65_535 : 12
    let key = (0..<Int.random(in: 1...keyBytes, using: &random)).map { _ in
      UInt8.random(in: 0..<4, using: &random)
    }
    guard Int.random(in: 0..<4, using: &random) > 0 else { return (key, nil) }
    let bound = [0, 9, 300, 300, 20_000, 70_000].randomElement(using: &random) ?? 0
    let length = Int.random(in: 0...bound, using: &random)
    return (key, (0..<length).map { UInt8(truncatingIfNeeded: $0 &* 7) })
  }

  /// Makes up labels in order; the longest ones are rare.
  private func drawLabels(_ random: inout SeededGenerator) -> [[UInt8]] {
    let count = [0, 0, 1, 1, 2, 9].randomElement(using: &random) ?? 0
    let longest = Int.random(in: 0..<9, using: &random) == 0 ? Limits.labelBytes : 12
    return (0..<count).map { number in
      let length = Int.random(in: 1...longest, using: &random)
      return (0..<length).map { $0 == 0 ? UInt8(number) : UInt8.random(in: 0..<9, using: &random) }
    }
  }

  @Test("a single frame has the bytes that a builder makes of the same entry", arguments: 1...3)
  func sameFrame(seed: UInt64) throws {
    var random = SeededGenerator(seed: seed)
    var single = SingleFrame()
    let codecs = FrameCodecs(contexts: ZstdContexts())
    for sequence: UInt64 in 1...200 {
      let (key, value) = draw(&random)
      guard SingleFrame.fits(keyBytes: key.count, valueBytes: value?.count ?? 0) else { continue }
      let time = UInt64.random(in: 0 ..< .max, using: &random)
      let previous = UInt64.random(in: 0..<sequence, using: &random)
      let labels = value == nil ? [] : drawLabels(&random)
      let offset = Int.random(in: 0..<(1 << 26), using: &random) * 8
      let salt = UInt32.random(in: 0 ... .max, using: &random)
      var entry = FrameBuilder.Entry(
        kind: value == nil ? .delete : .put, endsBatch: true, sequence: sequence, commitTime: time)
      entry.previous = previous
      entry.labelSetID = labels.isEmpty ? 0 : 7
      var builder = FrameBuilder()
      let none: [UInt8] = []
      builder.add(
        entry, key: key.rawSpan, value: value?.rawSpan, attributes: none.rawSpan
      ) { _ in labels }
      var expected: [UInt8] = []
      let built = try builder.finish(
        appendingTo: &expected, offset: offset, salt: salt, durableThrough: 3, level: nil,
        codecs: codecs)
      single.fill(
        entry.kind, sequence: sequence, previous: previous, commitTime: time, key: key.rawSpan,
        labels: labels, value: value?.rawSpan)
      single.finish(offset: offset, salt: salt, durableThrough: 3)
      #expect([UInt8](copying: single.bytes) == expected, "seed \(seed), entry \(sequence)")
      #expect(single.header == built.header, "seed \(seed), entry \(sequence)")
      #expect(single.block == built.blocks.first, "seed \(seed), entry \(sequence)")
      #expect(Array(single.value) == value ?? [], "seed \(seed), entry \(sequence)")
    }
  }

  /// The contents of a store's files after the same writes, one by one or through batches.
  private func files(
    _ writes: [(key: [UInt8], value: [UInt8]?, labels: [[UInt8]], durability: Durability)],
    throughBatches: Bool
  ) throws -> (files: [String: [UInt8]], sequences: [Range<UInt64>], taken: Int) {
    var store = TestStore()
    store.configuration.segmentBytes = 512 << 10
    let engine = try store.open()
    var sequences: [Range<UInt64>] = []
    var taken = 0
    for write in writes {
      store.clock.advance(by: .milliseconds(1))
      var result: CommitResult?
      if !throughBatches {
        result = try engine.stageSingle(
          write.value == nil ? .delete : .put, key: write.key.rawSpan,
          value: write.value?.rawSpan, labels: write.labels, durability: write.durability)
        if result != nil { taken += 1 }
      }
      if result == nil {
        var batch = OperationBatch()
        try batch.add(
          write.value == nil ? .delete : .put, key: write.key.rawSpan,
          value: write.value?.rawSpan, labelSet: try batch.addLabelSet(write.labels))
        result = try engine.stage(batch, durability: write.durability)
      }
      let done = try #require(result)
      if write.durability == .durable { try engine.writer.sync(through: done.lastSeen) }
      sequences.append(done.sequences)
      let value = try engine.reader.withValue(forKey: write.key.rawSpan) {
        (value, _) throws(TidemarkError) in [UInt8](copying: value)
      }
      #expect(value == write.value)
    }
    try engine.close()
    let report = try StoreVerifier.verify(
      store.path, environment: store.environment())
    #expect(report.isHealthy)
    var files: [String: [UInt8]] = [:]
    for path in store.disk.files() where path.contains("/log/") {
      files[path] = store.disk.contents(of: path)
    }
    return (files, sequences, taken)
  }

  @Test("puts of one key leave the log that batches of one leave", arguments: [1, 2] as [UInt64])
  func sameLog(seed: UInt64) throws {
    var random = SeededGenerator(seed: seed)
    var writes: [(key: [UInt8], value: [UInt8]?, labels: [[UInt8]], durability: Durability)] = []
    for _ in 0..<250 {
      let (key, value) = draw(&random)
      let durability = [Durability.buffered, .buffered, .durable, .async]
        .randomElement(using: &random)
      let labels = value == nil ? [] : drawLabels(&random).reversed() + [[0], [0]]
      writes.append((key, value, labels, durability ?? .buffered))
    }
    let singly = try files(writes, throughBatches: false)
    let batched = try files(writes, throughBatches: true)
    #expect(singly.sequences == batched.sequences, "seed \(seed)")
    #expect(singly.files == batched.files, "seed \(seed)")
    #expect(singly.files.count > 1, "seed \(seed): the writes fill several segments")
    #expect(singly.taken > 100, "seed \(seed)")
  }

  @Test("single puts use the memory of a frame again, and nothing else leaves any behind")
  func memory() throws {
    let engine = try TestStore().open()
    func kept() -> Int { engine.reader.reading.withLock { $0.nextFrame.values.capacity } }
    func put(_ key: String, bytes: Int) throws {
      let value = [UInt8](repeating: 7, count: bytes)
      let result = try engine.stageSingle(
        .put, key: Array(key.utf8).rawSpan, value: value.rawSpan, durability: .async)
      #expect(result != nil)
    }
    for key in 0..<200 where kept() == 0 { try put("\(key)", bytes: 10_000) }
    #expect(kept() >= 1 << 20)
    var batch = OperationBatch()
    try batch.add(
      .put, key: bytes("long").rawSpan, value: [UInt8](repeating: 7, count: 32 << 20).rawSpan)
    try engine.commit(batch, durability: .async)
    #expect(kept() == 0)
    for key in 0..<200 where kept() == 0 { try put("\(key)", bytes: 10_000) }
    #expect(kept() >= 1 << 20)
    try engine.suspend()
    #expect(kept() == 0)
    try engine.close()
  }

  @Test("a value that is on its way to the kernel is read from memory")
  func readWhileWritten() throws {
    let store = TestStore()
    let disk = HookedDisk(store.disk)
    let engine = try Engine.open(
      store.path, configuration: store.configuration,
      environment: EngineEnvironment(
        fileSystem: disk, clock: store.clock, random: SeededRandom(seed: 7)))
    try engine.put("first", "0")
    let seen = Lock<(value: String?, sequence: UInt64)>((nil, 0))
    disk.once(.before, .write, of: "/log/") {
      let value = try? engine.get("key")
      seen.withLock { $0 = (value, engine.reader.lastSequence) }
    }
    let result = try engine.stageSingle(.put, key: bytes("key").rawSpan, value: bytes("1").rawSpan)
    #expect(seen.withLock { $0.value } == "1")
    #expect(seen.withLock { $0.sequence } == result?.sequences.lowerBound)
    #expect(try engine.get("key") == "1")
  }

  @Test("a put of one key whose write fails stays readable and poisons the writer")
  func failedWrite() throws {
    let store = TestStore()
    let engine = try store.open()
    try engine.put("first", "0")
    store.disk.plan = .error(.EIO, atCall: 1, of: [.write])
    let error = #expect(throws: TidemarkError.self) {
      try engine.stageSingle(.put, key: bytes("key").rawSpan, value: bytes("1").rawSpan)
    }
    #expect(error?.code == .unknownOutcome)
    #expect(try engine.get("key") == "1")
    let next = #expect(throws: TidemarkError.self) {
      try engine.stageSingle(.delete, key: bytes("key").rawSpan)
    }
    #expect(next?.code == .poisoned)
  }
}
