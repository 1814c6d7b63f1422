import Testing
import Tidemark
import TidemarkEngine

@Suite("All entries at once")
struct AllTests {
  let store: Store

  init() throws {
    store = try Machine().open()
    for number in 1...5 {
      try store.blocking.put("note/\(number)", "\(number)", labels: number == 2 ? [] : ["odd"])
    }
  }

  @Test("an array holds what the rows of the query hold, in their order")
  func all() throws {
    let query = EntryQuery(prefix: "note/", labels: .all("odd"), descending: true, limit: 3)
    var rows = try store.entries(query)
    var expected: [Entry] = []
    while let entry = try rows.next() { expected.append(entry) }
    #expect(expected.count == 3)
    #expect(try store.all(query) == expected)
    #expect(
      try store.all(prefix: "note/", labels: .all("odd"), descending: true, limit: 3) == expected)
    #expect(try store.view(at: 2).all().map(\.key) == ["note/1", "note/2"])
  }

  @Test("forEach is given what the rows of the query hold, and ends with what its closure throws")
  func each() throws {
    struct Enough: Error {}
    var keys: [Key] = []
    try store.forEach { entry in keys.append(entry.key) }
    #expect(keys == ["note/1", "note/2", "note/3", "note/4", "note/5"])
    keys = []
    #expect(throws: Enough.self) {
      try store.forEach(EntryQuery(order: .sequence, descending: true)) { entry in
        keys.append(entry.key)
        if keys.count == 2 { throw Enough() }
      }
    }
    #expect(keys == ["note/5", "note/4"])
  }

  @Test("an array of more than the limit is refused, with values that were not read it is not")
  func limit() throws {
    let store = try Store.openBlocking(at: .inMemory)
    let large = [UInt8](repeating: 7, count: 60 << 20)
    for number in 1...5 { try store.blocking.put("\(number)", large) }
    #expect(code { _ = try store.all() } == .limitExceeded)
    #expect(try store.all(EntryQuery(values: false)).count == 5)
    #expect(try store.all(limit: 1).count == 1)
  }
}
