import Testing
import Tidemark
@testable import TidemarkCaches
import TidemarkEngine
import TidemarkTestKit

@Suite("Versions of a cache")
struct CacheVersionTests {
  let machine = Machine()

  private func page(_ text: String) -> [UInt8] { Array(text.utf8) }

  @Test("entries of older versions go, those of later ones and of others stay")
  func versions() async throws {
    let store = try machine.open()
    let one = try await store.cache(prefix: "a/", version: 1, policy: .manifest)
    for number in 0..<5_000 { try store.blocking.put("a/mine\(number % 3)", "\(number)") }
    var batch = WriteBatch()
    let options = PutOptions(storageClass: .cache)
    for number in 0..<5_000 { try batch.put("a/v0000000001/\(number)", "1", options: options) }
    try await store.write(batch)
    try await one.sync(with: ScriptedCollection(["k"]))
    let five = try await store.cache(prefix: "a/", version: 5)
    try await five.put("k", page("5"))
    let two = try await store.cache(prefix: "a/", version: 2)
    try await two.put("k", page("2"))
    #expect(
      try store.found() == [
        "a/mine0", "a/mine1", "a/mine2", "a/v0000000002/k", "a/v0000000005/k",
      ])
    #expect(try one.count == 0)
    let again = try await store.cache(prefix: "a/", version: 2)
    #expect(try again.value(forKey: "k")?.text == "2")
    try await store.close()
  }
}
