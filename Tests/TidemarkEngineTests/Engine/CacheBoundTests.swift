import Testing
import TidemarkTestKit

@testable import TidemarkEngine

@Suite("The memory of the caches")
struct CacheBoundTests {
  @Test(
    "the caches of values and of decoded parts of the log have together what was configured",
    arguments: [0, 256 << 10, 1 << 20])
  func bound(cacheBytes: Int) throws {
    var store = TestStore()
    store.configuration.cacheBytes = cacheBytes
    let engine = try store.open()
    var chance = SeededGenerator(seed: 6)
    for i in 0..<300 {
      try engine.put("k\(i)", (0..<300).map { _ in String(chance.next(), radix: 36) }.joined())
    }
    try engine.compact()
    for _ in 0..<3 { for i in 0..<300 { _ = try engine.get("k\(i)") } }
    let (values, decoded) = (engine.reader.hotCache.bytes, engine.reader.caches.bytes)
    #expect(decoded > 32 << 10, "nothing was read from the log")
    #expect(values + decoded <= cacheBytes + 128 << 10, "\(values), \(decoded)")
    try engine.close()
  }
}
