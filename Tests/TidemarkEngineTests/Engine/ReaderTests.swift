import Testing
import TidemarkTestKit

@testable import TidemarkEngine

@Suite("A reader beside a writer")
struct ReaderTests {
  @Test("a view is refused, not answered wrongly, once the writer has dropped what it shows")
  func view() throws {
    let store = TestStore()
    let writer = try store.open()
    for i in 1...5 { try writer.put("k", "\(i)") }
    try writer.put("gone", "1")
    try writer.delete("gone")
    let reader = try store.open(.readOnly)
    let view = try reader.reader.view(at: 6)
    #expect(try reader.keys(in: view) == ["gone", "k"])
    for i in 6...9 { try writer.put("k", "\(i)") }
    try writer.compact(CompactionOptions(dropHistory: true))
    #expect(try reader.get("k", in: view) == "5")
    try reader.refresh()
    for key in ["k", "gone"] {
      let error = #expect(throws: TidemarkError.self) { try reader.get(key, in: view) }
      #expect(error?.code == .historyGone)
    }
    let error = #expect(throws: TidemarkError.self) { try reader.keys(in: view) }
    #expect(error?.code == .historyGone)
    #expect(try reader.get("k") == "9")
    try reader.close()
    try writer.close()
  }

  @Test("values stay readable when the writer has replaced their files")
  func replacedFiles() throws {
    let store = TestStore()
    let writer = try store.open()
    for i in 0..<50 {
      try writer.put("k\(i)", "value \(i)")
      if i % 10 == 9 { try writer.writer.sealSegments() }
    }
    let reader = try store.open(.readOnly)
    try writer.compact()
    try writer.put("more", "1")
    for i in 0..<50 { #expect(try reader.get("k\(i)") == "value \(i)") }
    try reader.refresh()
    #expect(try reader.get("more") == "1")
    try reader.close()
    try writer.close()
  }

  @Test("a read that needs no missing file is answered, to a reader and in salvage")
  func missingFile() throws {
    let store = TestStore()
    let writer = try store.open()
    try writer.put("a", "1")
    try writer.writer.sealSegments()
    try writer.put("b", "2")
    try writer.checkpointer.writeRun()
    try writer.close()
    let first = try #require(store.disk.files().filter { $0.hasSuffix(".seg") }.min())
    store.disk.erase(first)
    for recovery in [EngineConfiguration.Recovery.strict, .salvage] {
      var configuration = store.configuration
      configuration.access = .readOnly
      configuration.recovery = recovery
      let reader = try Engine.open(
        store.path, configuration: configuration, environment: store.environment())
      #expect(try reader.get("b") == "2")
      let error = #expect(throws: TidemarkError.self) { try reader.get("a") }
      #expect(error?.code == .damaged)
      try reader.close()
    }
  }

  @Test("a frame that is only half written is not damage, however often one looks")
  func busyWriter() async throws {
    let disk = MemoryFileSystem()
    let environment = EngineEnvironment(
      fileSystem: disk, clock: SystemClock(), random: SeededRandom(seed: 5))
    let writer = try Engine.open(
      "store", configuration: EngineConfiguration(), environment: environment)
    try writer.put("first", "1")
    let writing = Task.detached {
      var i = 0
      // Bounded: the log that every refresh reads must not outgrow a machine that is busy.
      for _ in 0..<80 where !Task.isCancelled {
        var batch = OperationBatch()
        for _ in 0..<50 {
          i += 1
          try batch.add(
            .put, key: bytes("k\(i % 500)").rawSpan,
            value: [UInt8](repeating: UInt8(i & 0xff), count: 900).rawSpan)
        }
        try writer.commit(batch)
        await Task.yield()
      }
    }
    var configuration = EngineConfiguration()
    configuration.access = .readOnly
    let reader = try Engine.open("store", configuration: configuration, environment: environment)
    var last: UInt64 = 0
    for _ in 0..<60 {
      try reader.refresh()
      #expect(reader.reader.lastSequence >= last)
      last = reader.reader.lastSequence
    }
    writing.cancel()
    try await writing.value
    try reader.close()
    try writer.close()
  }
}
