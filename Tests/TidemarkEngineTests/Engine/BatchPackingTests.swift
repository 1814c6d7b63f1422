import Testing
import TidemarkTestKit

@testable import TidemarkEngine

@Suite("Batches whose blocks a thread helps to compress") struct BatchPackingTests {
  private func store(usesThread: Bool) -> TestStore {
    var store = TestStore()
    store.configuration.doesBackgroundWorkInline = !usesThread
    return store
  }

  private func value(_ number: Int, _ round: Int) -> [UInt8] {
    bytes(String(repeating: "value \(number) of \(round), ", count: 5 + number % 31))
  }

  private func batch(_ round: Int, count: Int = 500, labels: Bool = true) throws -> OperationBatch {
    var batch = OperationBatch()
    for number in 0..<count {
      let key = bytes("key \(number * (round + 1) % 900)")
      if number % 9 == 8 {
        try batch.add(.delete, key: key.rawSpan)
      } else {
        let set = labels && number % 3 == 0 ? try batch.addLabelSet([bytes("l\(number % 7)")]) : -1
        try batch.add(.put, key: key.rawSpan, value: value(number, round).rawSpan, labelSet: set)
      }
    }
    return batch
  }

  private func log(_ store: TestStore) -> [[UInt8]] {
    store.disk.files().filter { $0.contains("/log/") }.sorted().map {
      store.disk.contents(of: $0) ?? []
    }
  }

  @Test("a log has the same bytes whether a thread has helped or not")
  func sameLog() throws {
    try expectSameLog()
    #if Encryption
      try expectSameLog(TestKeys.encryption(1))
    #endif
  }

  private func expectSameLog(_ encryption: Encryption? = nil) throws {
    var stores = [store(usesThread: false), store(usesThread: true)]
    for index in stores.indices {
      stores[index].configuration.encryption = encryption
      let store = stores[index]
      let engine = try store.open()
      for round in 0..<12 {
        // Batches of several frames, too.
        let batch = try batch(round, count: round % 4 == 3 ? 4000 : 500)
        try engine.commit(batch, durability: [.buffered, .durable, .async][round % 3])
        try engine.put("single \(round)", "1", durability: round % 2 == 0 ? .async : .buffered)
      }
      #expect(
        engine.writer.packer?.isStarted ?? false == !store.configuration.doesBackgroundWorkInline)
      try engine.close()
    }
    #expect(log(stores[0]) == log(stores[1]))
  }

  @Test("a batch that cannot be written poisons the writer, and goes with nothing before it")
  func failure() throws {
    let store = store(usesThread: true)
    let engine = try store.open()
    try engine.commit(batch(1))
    let last = engine.reader.lastSequence
    store.disk.plan = .error(.EIO, atCall: 1, of: [.write])
    let error = #expect(throws: TidemarkError.self) { try engine.commit(batch(2)) }
    #expect(error?.code == .unknownOutcome)
    store.disk.plan = .none
    #expect(throws: TidemarkError.self) { try engine.commit(batch(3)) }
    try? engine.close()
    let again = try store.open()
    #expect(again.reader.lastSequence == last)
    #expect(try again.get("key 0") != nil)
    try again.commit(batch(4))
    try again.close()
  }

  @Test("a batch goes the same way after the store was suspended and resumed")
  func suspending() throws {
    let store = store(usesThread: true)
    let engine = try store.open()
    for round in 0..<6 {
      try engine.commit(batch(round))
      try engine.suspend()
      #expect(throws: TidemarkError.self) { try engine.commit(batch(round)) }
      try engine.resume()
    }
    let found = try engine.get("key 4")
    try engine.close()
    let again = try store.open()
    #expect(try again.get("key 4") == found)
    try again.close()
  }

  @Test("a batch whose condition does not hold leaves nothing behind")
  func conflict() throws {
    let store = store(usesThread: true)
    let engine = try store.open()
    try engine.commit(batch(0))
    let last = engine.reader.lastSequence
    var refused = try batch(1)
    let condition = refused.addCondition(.absent)
    try refused.add(
      .put, key: bytes("key 0").rawSpan, value: value(1, 1).rawSpan, condition: condition)
    #expect(throws: TidemarkError.self) { try engine.commit(refused) }
    #expect(engine.reader.lastSequence == last)
    try engine.commit(batch(2))
    try engine.close()
  }

  @Test("readers see a batch as a whole while its blocks are being compressed")
  func readers() throws {
    let store = store(usesThread: true)
    let engine = try store.open()
    let isOver = Lock(false)
    let reader = try WorkerThread(name: "reader") {
      while !isOver.withLock({ $0 }) {
        do {
          let view = try engine.reader.view()
          let first = try engine.get("first", in: view)
          #expect(try engine.get("last", in: view) == first)
        } catch { Issue.record("\(error)") }
      }
    }
    for round in 0..<40 {
      var batch = OperationBatch()
      let text = bytes("\(round)")
      try batch.add(.put, key: bytes("first").rawSpan, value: text.rawSpan)
      for number in 0..<400 {
        try batch.add(
          .put, key: bytes("key \(number)").rawSpan, value: value(number, round).rawSpan)
      }
      try batch.add(.put, key: bytes("last").rawSpan, value: text.rawSpan)
      try engine.commit(batch)
    }
    isOver.withLock { $0 = true }
    reader.join()
    try engine.close()
  }
}
