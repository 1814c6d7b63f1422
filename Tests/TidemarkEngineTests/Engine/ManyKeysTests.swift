import Testing
import TidemarkTestKit

@testable import TidemarkEngine

@Suite("Many keys looked up together")
struct ManyKeysTests {
  private static let count = 6_000

  private static let ends = (0..<count).map { bytes("\(10_000 + $0)") }

  private func fill(_ engine: Engine) throws {
    var batch = OperationBatch()
    for end in Self.ends { try batch.add(.put, key: (bytes("key/") + end).rawSpan) }
    _ = try engine.commit(batch)
  }

  private func check(_ engine: Engine, _ message: String, reversed: Bool = false) throws {
    let ends = reversed ? Self.ends.reversed() : Self.ends
    let found = try engine.reader.newestEntries(ofKeysWith: bytes("key/"), ends).map(\.sequence)
    let wanted = (1...UInt64(Self.count)).map { $0 }
    #expect(found == (reversed ? wanted.reversed() : wanted), "\(message)")
  }

  @Test(
    "keys are found in an index whose file is damaged, wherever that is",
    arguments: [false, true])
  func damaged(reversed: Bool) throws {
    var places = 0
    for place in stride(from: 4_096 + 100, to: .max, by: 16_384 + 8) {
      let store = TestStore()
      var engine = try store.open()
      try fill(engine)
      try engine.close()
      let file = try #require(store.disk.files().first { $0.contains("/index/") })
      let length = try #require(store.disk.contents(of: file)).count
      if place >= length { break }
      places += 1
      #expect(store.disk.flipBit(place * 8, inFile: file))
      engine = try store.open()
      try check(engine, "byte \(place)", reversed: reversed)
      try engine.close()
    }
    #expect(places > 4)
  }

  @Test("keys are found in a memtable above the runs, and those that are gone are not")
  func layers() throws {
    let store = TestStore()
    var engine = try store.open()
    try fill(engine)
    try engine.close()
    engine = try store.open()
    try engine.put("key/10007", "new")
    try engine.delete("key/10009")
    try engine.touch("key/10011")
    for ends in [Self.ends, Self.ends.reversed()] {
      let found = try engine.reader.newestEntries(ofKeysWith: bytes("key/"), ends)
      for (end, entry) in zip(ends, found) {
        let slot = try #require(try engine.reader.slot(ofKey: (bytes("key/") + end).rawSpan))
        #expect(entry.sequence == (slot.isDeleted ? 0 : slot.sequence))
        #expect(entry.isTouch == (!slot.isDeleted && slot.size.isTouched))
      }
      #expect(found.count { $0.sequence == 0 } == 1)
      #expect(found.count { $0.isTouch } == 1)
    }
    try engine.close()
  }
}
