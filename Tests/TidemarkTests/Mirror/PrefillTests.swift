import Foundation
import Testing
import Tidemark
@testable import TidemarkCaches
import TidemarkEngine
import TidemarkTestKit

@Suite("Caches that come filled with the program")
struct PrefillTests {
  let machine = Machine()
  private let directory = FileManager.default.temporaryDirectory.appending(
    path: "prefill-\(UUID().uuidString)")

  private func cache(_ store: Store) throws -> Cache<[UInt8]> {
    try store.cache(prefix: "c/", policy: .manifest)
  }

  private func write(_ name: String, _ text: String) throws -> String {
    try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
    let path = directory.appending(path: name).path
    try Data(text.utf8).write(to: URL(filePath: path))
    return path
  }

  private static func line(_ key: String, _ value: String, hash: String? = nil) -> String {
    #"{"key":"\#(key)","value":"\#(value)""#
      + (hash.map { #","hash":"\#($0)""# } ?? "") + #","labels":["first"]}"# + "\n"
  }

  @Test("a file fills the cache once, and again after an update of the program")
  func updates() async throws {
    let store = try machine.open()
    let cache = try cache(store)
    try await store.put("c/mine", "mine")
    let text =
      Self.line("p/a", "1") + Self.line("p/b", "1") + Self.line("p/mine", "1")
      + Self.line("other", "1") + Self.line("p/a", "2") + #"{"op":"delete","key":"p/b"}"# + "\n"
      + Self.line("p/c", "1")
    var path = try write("one.ndjson", text)
    var data = PrefilledData.lines(at: path, keyPrefix: "p/")
    var outcome = try await cache.prefill(from: data)
    #expect(outcome.kind == .switched && outcome.added == 2 && outcome.owned == 1)
    #expect(try cache.texts() == ["a": "2", "c": "1"])
    #expect(try cache.entry(forKey: "a")?.labels == ["first"])
    #expect(try cache.manifest?.isPrefilled == true)
    let sequence = store.lastSequence
    #expect(try await cache.prefill(from: data).kind == .unchanged)
    #expect(store.lastSequence == sequence)
    path = try write("two.ndjson", Self.line("p/a", "2") + Self.line("p/d", "1"))
    data = PrefilledData.lines(at: path, keyPrefix: "p/")
    outcome = try await cache.prefill(from: data)
    #expect(outcome.added == 1 && outcome.deleted == 1 && outcome.refetched == 0)
    #expect(try cache.texts() == ["a": "2", "d": "1"])
    #expect(try store.text(forKey: "c/mine") == "mine")
    try await store.close()
    try FileManager.default.removeItem(at: directory)
  }

  @Test("a server's generation ranks above, and its first sync fetches only what differs")
  func rank() async throws {
    let store = try machine.open()
    let cache = try cache(store)
    let source = ScriptedCollection(["a", "b", "c"])
    await source.set("c", 2)
    let path = try write(
      "one.ndjson",
      Self.line("a", "a 1", hash: "01") + Self.line("b", "b 1", hash: "01")
        + Self.line("c", "c 1", hash: "01") + Self.line("old", "1", hash: "01"))
    try await cache.prefill(from: .lines(at: path))
    let hash = try #require(try cache.entry(forKey: "a")?.hash)
    await source.listHashes(as: [1: hash])
    let outcome = try await cache.sync(with: source)
    #expect(outcome.refetched == 1 && outcome.added == 0 && outcome.deleted == 1)
    #expect(await source.fetched == ["c"])
    let other = try write("two.ndjson", Self.line("z", "1"))
    #expect(try await cache.prefill(from: .lines(at: other)).kind == .unchanged)
    #expect(try cache.texts() == ["a": "a 1", "b": "b 1", "c": "c 2"])
    try await store.close()
    try FileManager.default.removeItem(at: directory)
  }

  @Test("values that came from the server before the first sync stay above those of the program")
  func earlier() async throws {
    let store = try machine.open()
    let cache = try cache(store)
    try await cache.put("a", Array("server".utf8))
    try await cache.put("extra", Array("server".utf8))
    var path = try write("one.ndjson", Self.line("a", "1") + Self.line("b", "1"))
    try await cache.prefill(from: .lines(at: path))
    #expect(try cache.texts() == ["a": "server", "extra": "server", "b": "1"])
    try await cache.put("b", Array("server".utf8))
    path = try write("two.ndjson", Self.line("a", "2") + Self.line("b", "2") + Self.line("c", "2"))
    try await cache.prefill(from: .lines(at: path))
    #expect(
      try cache.texts() == ["a": "server", "extra": "server", "b": "server", "c": "2"])
    try await store.close()
    try FileManager.default.removeItem(at: directory)
  }

  @Test("a store that comes with the program fills the cache as a file does")
  func store() async throws {
    let path = directory.appending(path: "data.tidemark").path
    try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
    let shipped = try await Store.open(at: path)
    for number in 0..<300 { try await shipped.put("p/\(number)", "value \(number)") }
    try await shipped.put("other", "1")
    try await shipped.close()
    let store = try machine.open()
    let cache = try cache(store)
    let data = PrefilledData.store(at: path, keyPrefix: "p/")
    #expect(try await cache.prefill(from: data).added == 300)
    #expect(try cache.value(forKey: "217")?.text == "value 217" && cache.count == 300)
    #expect(try await cache.prefill(from: data).kind == .unchanged)
    try await store.close()
    try FileManager.default.removeItem(at: directory)
  }

  @Test("prefill takes attachments from another store, or from files named by its lines")
  func attachments() async throws {
    try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
    let path = directory.appending(path: "data.tidemark").path
    let shipped = try await Store.open(at: path)
    var lines = ""
    for number in 0..<4 {
      let content = [UInt8](repeating: UInt8(number), count: 70_000)
      let staged = try await shipped.attach(content)
      try await shipped.put("p/\(number)", "v", options: PutOptions(attachment: staged))
      let name = staged.reference.description
      lines += #"{"key":"p/\#(number)","value":"v","#
      lines += #""attachment":"sha256:\#(name):70000"}"# + "\n"
      try Data(content).write(to: directory.appending(path: name))
    }
    try await shipped.close()
    let file = try write("data.ndjson", lines)
    let forms: [PrefilledData] = [
      .store(at: path, keyPrefix: "p/"),
      .lines(at: file, keyPrefix: "p/", attachments: directory.path),
    ]
    for data in forms {
      let store = try Machine().open()
      let cache = try cache(store)
      #expect(try await cache.prefill(from: data).added == 4)
      try await store.sweepAttachments()
      for number in 0..<4 {
        let reader = try #require(try cache.attachment(forKey: "\(number)"))
        #expect(try reader.read(0..<100_000) == [UInt8](repeating: UInt8(number), count: 70_000))
      }
      #expect(try await cache.prefill(from: data).kind == .unchanged)
      try await store.close()
    }
    // Content that is not there, or is another, is told and changes nothing.
    let store = try machine.open()
    let cache = try cache(store)
    let absent = PrefilledData.lines(at: file, keyPrefix: "p/")
    #expect(await code { try await cache.prefill(from: absent) } == .coding)
    let empty = directory.appending(path: "empty").path
    let lacking = PrefilledData.lines(at: file, keyPrefix: "p/", attachments: empty)
    #expect(await code { try await cache.prefill(from: lacking) } == .coding)
    for name in try FileManager.default.contentsOfDirectory(atPath: directory.path)
    where name.count == 64 {
      try Data("other".utf8).write(to: directory.appending(path: name))
    }
    let damaged = PrefilledData.lines(at: file, keyPrefix: "p/", attachments: directory.path)
    #expect(await code { try await cache.prefill(from: damaged) } == .damaged)
    #expect(try cache.count == 0 && cache.manifest == nil)
    try await store.close()
    try FileManager.default.removeItem(at: directory)
  }

  @Test("data that cannot be read is told with its place, and changes nothing")
  func damage() async throws {
    let store = try machine.open()
    let cache = try cache(store)
    let bad = try write("bad.ndjson", Self.line("a", "1") + "{\n")
    #expect(await code { try await cache.prefill(from: .lines(at: bad)) } == .coding)
    let torn = directory.appending(path: "torn.zst").path
    try Data([0x28, 0xb5, 0x2f, 0xfd, 0x04, 0x00]).write(to: URL(filePath: torn))
    #expect(await code { try await cache.prefill(from: .lines(at: torn)) } == .coding)
    let absent = directory.appending(path: "absent").path
    #expect(await code { try await cache.prefill(from: .lines(at: absent)) } != nil)
    #expect(await code { try await cache.prefill(from: .store(at: absent)) } == .storeMissing)
    #expect(try cache.count == 0 && cache.manifest == nil && cache.manifestFailure != nil)
    try await store.close()
    try FileManager.default.removeItem(at: directory)
  }
}
