import Testing
import TidemarkTestKit

@testable import TidemarkEngine

@Suite("Puts beside upkeep")
struct PutStallTests {
  private let value = String(repeating: "v", count: 1000)

  @Test("a segment that is full is sealed after the sync that is under way, and not much later")
  func sealing() throws {
    var store = TestStore()
    store.configuration.segmentBytes = 100_000
    store.configuration.doesBackgroundWorkInline = false
    let disk = HookedDisk(store.disk)
    let engine = try store.open(on: disk)
    let segments = { engine.reader.reading.withLock { $0.segments.count } }
    let length = { engine.reader.reading.withLock { $0.segments.first?.usedLength() ?? 0 } }
    for i in 0..<200 where length() < 94_000 { try engine.put("key\(i)", value) }
    #expect(segments() == 1)
    // The hook runs within the sync, on the thread that syncs: whoever had to wait for it here
    // would wait for ever.
    disk.once(.before, .sync, of: ".seg") {
      do { for i in 0..<3 { try engine.put("more\(i)", value) } } catch {
        Issue.record("\(error)")
      }
    }
    try engine.writer.flush()
    #expect(!disk.isWaiting)
    #expect(segments() == 1)
    try engine.put("last", value)
    #expect(segments() == 2)
    for i in 0..<300 { try engine.put("key\(i)", value) }
    #expect(engine.reader.reading.withLock { $0.segments.allSatisfy { $0.usedLength() < 113_000 } })
    try engine.close()
  }

  @Test("a put waits for no space to be set aside, where there is plenty")
  func ballast() throws {
    var store = TestStore()
    store.configuration.ballastFromLogBytes = 20_000
    store.disk.capacity = 1 << 30
    let disk = HookedDisk(store.disk)
    let engine = try store.open(on: disk)
    // The hook runs while space is set aside: whoever needed the lock for that would wait for ever.
    disk.once(.before, .allocate, of: StoreLayout.ballast) {
      do { try engine.put("meanwhile", "1") } catch { Issue.record("\(error)") }
    }
    for i in 0..<30 { try engine.put("key\(i)", value) }
    #expect(!disk.isWaiting)
    #expect(try engine.get("meanwhile") == "1")
    try engine.close()
    #expect(store.disk.contents(of: store.path + "/" + StoreLayout.ballast)?.count == 1 << 20)
  }
}
