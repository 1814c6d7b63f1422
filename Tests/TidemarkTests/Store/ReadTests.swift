import Testing
import Tidemark
import TidemarkTestKit

@Suite("Reading single keys")
struct ReadTests {
  let machine = Machine()
  let store: Store

  init() throws { store = try machine.open() }

  @Test("a value can be read in place")
  func inPlace() async throws {
    try await store.put("a", "four")
    #expect(try store.withValue(forKey: "a") { $0.byteCount } == 4)
    #expect(try store.withValue(forKey: "b") { $0.byteCount } == nil)
  }

  @Test("the memory of what was read can be given back, and all reads as before")
  func releaseMemory() async throws {
    for number in 0..<500 { try await store.put("\(number)", String(repeating: "a", count: 900)) }
    try await store.compact()
    func readAll() throws {
      for number in 0..<500 {
        #expect(try store.text(forKey: "\(number)") == String(repeating: "a", count: 900))
      }
    }
    let unused = try store.status.cacheBytes
    try readAll()
    let used = try store.status
    #expect(used.cacheBytes > unused + 400_000)
    store.releaseMemory()
    let released = try store.status
    #expect(released.cacheBytes <= unused + (used.cacheBytes - unused) / 10)
    #expect(released.memoryBytes < used.memoryBytes)
    try readAll()
    #expect(try store.status.cacheBytes > released.cacheBytes)
  }

  @Test("an error that the closure throws comes out as it is")
  func closureError() async throws {
    struct Stop: Error {}
    try await store.put("a", "1")
    #expect(throws: Stop.self) { try store.withValue(forKey: "a") { _ in throw Stop() } }
  }

  @Test("a value can be appended to bytes")
  func append() async throws {
    try await store.put("a", "1")
    var bytes: [UInt8] = [9]
    #expect(try store.appendValue(forKey: "a", to: &bytes))
    #expect(try !store.appendValue(forKey: "b", to: &bytes))
    #expect(bytes == [9, UInt8(ascii: "1")])
  }

  @Test("versions of a key come one by one, newest first, with and without their values")
  func versions() async throws {
    for number in 1...3 {
      try await store.put("a", "\(number)", labels: ["l\(number)"])
      try await store.put("b", "other")
    }
    try await store.delete("a")
    let then = try store.view(at: 5)
    var versions = try store.versions(ofKey: "a")
    var found: [Entry] = []
    while let version = try versions.next() { found.append(version) }
    #expect(found.map(\.kind) == [.delete, .put, .put, .put])
    #expect(found.map(\.value.text) == ["", "3", "2", "1"])
    #expect(found == (try store.history(ofKey: "a")))
    var past = try then.versions(ofKey: "a", values: false)
    let newest = try #require(try past.next())
    #expect(newest.sequence == 5)
    #expect(newest.value == [] && newest.valueLength == 1)
    var none = try store.versions(ofKey: "c")
    #expect(try none.next() == nil)
  }

  @Test("contains and count know deleted keys")
  func presence() async throws {
    try await store.put("a", "1")
    try await store.put("b", "1")
    try await store.delete("a")
    #expect(try !store.contains("a"))
    #expect(try store.contains("b"))
    #expect(try !store.contains("c"))
    #expect(try store.count() == 1)
  }

  @Test("an entry tells everything that was given and when")
  func metadata() async throws {
    let origin = EntryOrigin(replica: [UInt8](repeating: 7, count: 16), sequence: 99)
    let time = Timestamp(seconds: -5, nanoseconds: 3)
    let start = machine.clock.now()
    try await store.put(
      "a", "value", labels: ["x"],
      options: PutOptions(
        time: time, hash: [1, 2], maxAge: .seconds(60), storageClass: .cache, origin: origin))
    let entry = try #require(try store.entry(forKey: "a"))
    #expect(entry.key == "a")
    #expect(entry.value.text == "value")
    #expect(entry.valueLength == 5)
    #expect(entry.sequence == 1)
    #expect(entry.kind == .put)
    #expect(entry.labels == ["x"])
    #expect(entry.time == time)
    #expect(entry.hash == [1, 2])
    #expect(entry.maxAge == .seconds(60))
    #expect(entry.storageClass == .cache)
    #expect(entry.origin == origin)
    #expect(entry.created == start)
    #expect(entry.updated == start)
    #expect(entry.validated == start)
    #expect(try store.entry(forKey: "b") == nil)
  }

  @Test("created, updated and validated move as puts, touches and deletes do")
  func times() async throws {
    let first = machine.clock.now()
    try await store.put("a", "1")
    machine.clock.advance(by: .seconds(10))
    let second = machine.clock.now()
    try await store.put("a", "2")
    machine.clock.advance(by: .seconds(10))
    let third = machine.clock.now()
    try await store.touch("a")
    var entry = try #require(try store.entry(forKey: "a"))
    #expect(entry.created == first)
    #expect(entry.updated == second)
    #expect(entry.validated == third)
    try await store.delete("a")
    machine.clock.advance(by: .seconds(10))
    try await store.put("a", "3")
    entry = try #require(try store.entry(forKey: "a"))
    #expect(entry.created == machine.clock.now())
  }

  @Test("a key that is written and read in turns for long was created when it was first written")
  func longHistory() async throws {
    var created = machine.clock.now()
    for number in 0..<300 {
      if number % 100 == 99 {
        try await store.delete("a")
        machine.clock.advance(by: .seconds(1))
        created = machine.clock.now()
      }
      try await store.put("a", "\(number)")
      machine.clock.advance(by: .seconds(1))
      if number % 3 == 0 {
        let entry = try #require(try store.entry(forKey: "a"))
        #expect(entry.created == created, "after \(number)")
      }
    }
  }

  @Test("a history is newest first, with deletes and touches in it")
  func history() async throws {
    try await store.put("a", "1")
    try await store.put("b", "x")
    try await store.put("a", "2")
    try await store.touch("a")
    try await store.delete("a")
    try await store.put("a", "3")
    let history = try store.history(ofKey: "a")
    #expect(history.map(\.sequence) == [6, 5, 4, 3, 1])
    #expect(history.map(\.kind) == [.put, .delete, .touch, .put, .put])
    #expect(history.map(\.value.text) == ["3", "", "2", "2", "1"])
    #expect(try store.history(ofKey: "a", limit: 2).map(\.sequence) == [6, 5])
    #expect(try store.history(ofKey: "a", values: false).allSatisfy { $0.value.isEmpty })
    #expect(try store.history(ofKey: "never") == [])
  }

  @Test("a history of a view ends where the view does")
  func historyOfView() async throws {
    try await store.put("a", "1")
    try await store.put("a", "2")
    let view = try store.view()
    try await store.put("a", "3")
    #expect(try view.history(ofKey: "a").map(\.sequence) == [2, 1])
  }

  @Test("reads are right after the store was closed and opened again")
  func reopened() async throws {
    try await store.put("a", "1", labels: ["x"])
    try await store.delete("a")
    try await store.put("b", "2", labels: ["y"])
    try await store.touch("b", hash: [5])
    try await store.close()
    let again = try machine.open(.write)
    #expect(try again.state() == ["b": "2"])
    #expect(try again.entry(forKey: "b")?.hash == [5])
    #expect(try again.labels() == [LabelCount(label: "y", count: 1)])
    #expect(try again.history(ofKey: "a").count == 2)
    try await again.close()
  }
}
