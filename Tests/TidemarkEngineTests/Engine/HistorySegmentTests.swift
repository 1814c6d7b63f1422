import Testing
import TidemarkTestKit

@testable import TidemarkEngine

@Suite("History in compacted segments")
struct HistorySegmentTests {
  private static let keys = 60

  /// A compacted store of keys with five versions each; then every seventh was deleted, and every
  /// seventh touched.
  private func compacted(
    _ store: TestStore
  ) throws -> (engine: Engine, sequences: [[UInt64]]) {
    let engine = try store.open()
    var sequences: [[UInt64]] = []
    for version in 0..<5 {
      sequences.append(
        try (0..<Self.keys).map { try engine.put("key \($0)", "version \(version) of \($0)") })
    }
    for number in 0..<Self.keys where number % 7 == 0 { try engine.delete("key \(number)") }
    for number in 0..<Self.keys where number % 7 == 1 { try engine.touch("key \(number)") }
    try engine.compact()
    return (engine, sequences)
  }

  private func expectNewest(_ engine: Engine) throws {
    for number in 0..<Self.keys {
      let expected = number % 7 == 0 ? nil : "version 4 of \(number)"
      #expect(try engine.get("key \(number)") == expected)
    }
  }

  @Test("an index that is made from a compacted log knows the newest entry of each key")
  func index() throws {
    let store = TestStore()
    try compacted(store).engine.close()
    for name in try store.disk.list(store.path + "/index") {
      try store.disk.remove(store.path + "/index/" + name)
    }
    let engine = try store.open(.write)
    try expectNewest(engine)
    try engine.close()
  }

  @Test("views of the past read the versions that stand in history")
  func views() throws {
    let (engine, sequences) = try compacted(TestStore())
    for version in 0..<5 {
      let view = try engine.reader.view(at: sequences[version][Self.keys - 1])
      for number in 0..<Self.keys {
        #expect(try engine.get("key \(number)", in: view) == "version \(version) of \(number)")
      }
    }
    try expectNewest(engine)
    try engine.close()
  }

  @Test("the value of a key whose newest entry is a touch does not stand in history")
  func touched() throws {
    let (engine, sequences) = try compacted(TestStore())
    let segments = engine.reader.reading.withLock { $0.segments }
    func isHistory(_ version: Int, _ number: Int) throws -> Bool? {
      let sequence = sequences[version][number]
      let segment = segments.first { $0.range.contains(sequence) }
      return try segment?.frame(holding: sequence)?.record.isHistory
    }
    #expect(try isHistory(4, 1) == false)
    #expect(try isHistory(4, 2) == false)
    #expect(try isHistory(3, 2) == true)
    #expect(try isHistory(4, 7) == true)
    try engine.close()
  }
}
