import Testing
import Tidemark

@Suite("Writing to a store")
struct WriteTests {
  let store: Store

  init() throws { store = try Machine().open() }

  @Test("a value that was put is read back")
  func put() async throws {
    try await store.put("a", "one")
    #expect(try store.text(forKey: "a") == "one")
    #expect(try store.value(forKey: "b") == nil)
  }

  @Test("an empty value is a value")
  func emptyValue() async throws {
    try await store.put("a", "")
    #expect(try store.value(forKey: "a") == [])
  }

  @Test("keys may be text, bytes, slices and parts of text")
  func keyTypes() async throws {
    let text = "käse/1"
    try await store.put(text, [1, 2, 3] as [UInt8])
    #expect(try store.value(forKey: Array(text.utf8)) == [1, 2, 3])
    #expect(try store.value(forKey: Key(text)) == [1, 2, 3])
    #expect(try store.value(forKey: text.dropLast(0)) == [1, 2, 3])
    #expect(try store.value(forKey: Array(text.utf8)[...]) == [1, 2, 3])
  }

  @Test("two spellings of the same characters are two keys")
  func canonicalEquivalence() async throws {
    let (composed, decomposed) = ("\u{e9}", "e\u{301}")
    #expect(composed == decomposed)
    try await store.put(composed, "1")
    try await store.put(decomposed, "2")
    #expect(try store.count() == 2)
    #expect(Key(composed) != Key(decomposed))
  }

  @Test("a value that is lent is written")
  func lentValue() async throws {
    let bytes: [UInt8] = [7, 8, 9]
    try store.blocking.put("a", bytes.span.bytes)
    #expect(try store.value(forKey: "a") == bytes)
    try await store.put("b", bytes.span.bytes)
    #expect(try store.value(forKey: "b") == bytes)
  }

  @Test("every put takes the next sequence, also with an equal value")
  func sequences() async throws {
    let first = try await store.put("a", "1")
    let second = try await store.put("a", "1")
    #expect(first.sequence == 1)
    #expect(second.sequence == 2)
    #expect(second.sequences == 2..<3)
    #expect(first.epoch == second.epoch)
    #expect(first.commitTime <= second.commitTime)
    #expect(store.lastSequence == 2)
  }

  @Test("a delete says whether there was something, and takes a sequence only then")
  func delete() async throws {
    try await store.put("a", "1")
    #expect(try await store.delete("a"))
    #expect(try store.value(forKey: "a") == nil)
    #expect(try await !store.delete("a"))
    #expect(store.lastSequence == 2)
  }

  @Test("a touch renews validity, maximum age and hash and leaves the value")
  func touch() async throws {
    try await store.put(
      "a", "1", labels: ["x"], options: PutOptions(hash: [1], maxAge: .seconds(10)))
    #expect(try await store.touch("a", maxAge: .seconds(20), hash: [2]))
    let entry = try #require(try store.entry(forKey: "a"))
    #expect(entry.kind == .touch)
    #expect(entry.value.text == "1")
    #expect(entry.valueLength == 1)
    #expect(entry.labels == ["x"])
    #expect(entry.maxAge == .seconds(20))
    #expect(entry.hash == [2])
    #expect(try await !store.touch("b"))
    #expect(store.lastSequence == 2)
  }

  @Test("labels are a set in byte order")
  func labels() async throws {
    try await store.put("a", "1", labels: ["z", "b", "z"])
    #expect(try store.entry(forKey: "a")?.labels == ["b", "z"])
  }

  @Test("a put replaces labels and options too")
  func replacement() async throws {
    try await store.put("a", "1", labels: ["x"], options: PutOptions(hash: [1]))
    try await store.put("a", "2")
    let entry = try #require(try store.entry(forKey: "a"))
    #expect(entry.labels == [])
    #expect(entry.hash == nil)
    #expect(try store.found(EntryQuery(labels: .all("x"))) == [])
  }

  @Test(
    "keys, values, labels and hashes out of bounds are refused and nothing is written",
    arguments: [0, 1, 2, 3, 4])
  func bounds(_ what: Int) async throws {
    let code = await code {
      switch what {
      case 0: try await store.put("", "1")
      case 1: try await store.put([UInt8](repeating: 1, count: 65_536), "1")
      case 2: try await store.put("a", "1", labels: [EntryLabel([UInt8](repeating: 1, count: 256))])
      case 3:
        try await store.put("a", "1", labels: (0..<65).map { EntryLabel("\($0)") })
      default:
        try await store.put(
          "a", "1", options: PutOptions(hash: [UInt8](repeating: 0, count: 65)))
      }
    }
    #expect(code == .invalidArgument)
    #expect(store.lastSequence == 0)
  }

  @Test("a value of more than 64 MiB is refused")
  func largeValue() async throws {
    let value = [UInt8](repeating: 0, count: (64 << 20) + 1)
    #expect(await code { try await store.put("a", value) } == .invalidArgument)
  }

  @Test("the longest key can be written and read")
  func longestKey() async throws {
    let key = [UInt8](repeating: 0xff, count: 65_535)
    try await store.put(key, "1")
    #expect(try store.found(EntryQuery(prefix: Key([0xff]))).count == 1)
    #expect(try store.text(forKey: key) == "1")
  }
}
