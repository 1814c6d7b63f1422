import Testing
import Tidemark

@Suite("Pages")
struct PageTests {
  let store: Store

  init() throws {
    store = try Machine().open()
    for i in 0..<25 {
      try store.blocking.put(
        "key/\((i * 7) % 25 + 10)", "\(i)", labels: i.isMultiple(of: 2) ? ["even"] : [],
        options: PutOptions(time: Timestamp(seconds: Int64(i % 5))))
    }
  }

  /// All pages of a query, their cursors gone through text.
  private func paged(_ query: EntryQuery, limit: Int) throws -> [String] {
    var keys: [String] = []
    var page = try store.page(query, limit: limit)
    while true {
      #expect(page.entries.count <= limit)
      keys += page.entries.map(\.key.text)
      guard let next = page.next else { return keys }
      let cursor = try #require(PageCursor(next.description))
      #expect(cursor == next)
      page = try store.page(query, limit: limit, after: cursor)
    }
  }

  @Test(
    "pages together are the whole query, in every order and direction",
    arguments: [EntryQuery.Order.key, .sequence, .time], [false, true])
  func whole(_ order: EntryQuery.Order, _ descending: Bool) throws {
    let query = EntryQuery(prefix: "key/", order: order, descending: descending)
    let all = try store.found(query)
    #expect(all.count == 25)
    for limit in [1, 4, 5, 25, 100] { #expect(try paged(query, limit: limit) == all) }
    let labelled = EntryQuery(labels: .all("even"), order: order, descending: descending)
    #expect(try paged(labelled, limit: 3) == store.found(labelled))
  }

  @Test(
    "entries and keys go on behind any that was returned, in every order and direction",
    arguments: [EntryQuery.Order.key, .sequence, .time], [false, true])
  func anyCursor(_ order: EntryQuery.Order, _ descending: Bool) throws {
    let query = EntryQuery(prefix: "key/", order: order, descending: descending)
    let all = try store.found(query)
    var entries = try store.entries(query)
    var keys = try store.keys(query)
    var (cursor, same) = (entries.cursor, keys.cursor)
    #expect(cursor == nil && same == nil)
    for (number, key) in all.enumerated() {
      #expect(try entries.next()?.key.text == key)
      #expect(try keys.next()?.text == key)
      (cursor, same) = (entries.cursor, keys.cursor)
      #expect(cursor != nil && cursor == same)
      var rest = try store.entries(query, after: cursor)
      same = rest.cursor
      #expect(same == cursor)
      #expect(try rest.next()?.key.text == all.dropFirst(number + 1).first)
    }
    #expect(try entries.next() == nil)
    #expect(try keys.next() == nil)
    (cursor, same) = (entries.cursor, keys.cursor)
    #expect(cursor == same)
    var behind = try store.keys(query, after: cursor)
    #expect(try behind.next() == nil)
  }

  @Test("a cursor of another order is refused by entries and keys, too")
  func otherOrder() throws {
    let cursor = try #require(try store.page(limit: 1).next)
    let query = EntryQuery(order: .time)
    #expect(code { _ = try store.entries(query, after: cursor) } == .invalidArgument)
    #expect(code { _ = try store.keys(query, after: cursor) } == .invalidArgument)
  }

  @Test("keys tell the sequences of their newest entries")
  func sequences() throws {
    try store.blocking.put("key/12", "newer")
    var keys = try store.keys(prefix: "key/1")
    var sequence = keys.sequence
    #expect(sequence == 0)
    while let key = try keys.next() {
      sequence = keys.sequence
      #expect(try store.entry(forKey: key)?.sequence == sequence)
    }
  }

  @Test("a cursor stays good when its key is deleted")
  func deletedKey() throws {
    let page = try store.page(limit: 3)
    try store.blocking.delete(try #require(page.entries.last).key)
    let next = try store.page(limit: 3, after: page.next)
    #expect(next.entries.map(\.key.text) == ["key/13", "key/14", "key/15"])
  }

  @Test(
    "a cursor from outside a query's range leads to no key outside it", arguments: [false, true])
  func outside(_ descending: Bool) throws {
    try store.blocking.put("a", "before")
    try store.blocking.put("z", "behind")
    let queries = [
      EntryQuery(prefix: "key/1", descending: descending),
      EntryQuery(from: "key/15", upTo: "key/18", descending: descending),
      EntryQuery(prefix: "key/", labels: .all("even"), descending: descending),
    ]
    for query in queries {
      let inside = try store.found(query)
      for (key, isBelow) in [("0", true), ("a", true), ("key/99", false), ("zz", false)] {
        // Only the place of this key matters.
        let cursor = try #require(PageCursor("k" + key.utf8.map { String($0, radix: 16) }.joined()))
        let page = try store.page(query, limit: 100, after: cursor)
        #expect(
          page.entries.map(\.key.text) == (isBelow != descending ? inside : []), "\(query) \(key)")
      }
    }
    #expect(!(try store.found(queries[0]).isEmpty))
  }

  @Test("a cursor of another order and a page of nothing are refused")
  func wrong() throws {
    let page = try store.page(EntryQuery(order: .time), limit: 3)
    #expect(code { _ = try store.page(limit: 3, after: page.next) } == .invalidArgument)
    #expect(code { _ = try store.page(limit: 0) } == .invalidArgument)
  }

  @Test(
    "text that is no cursor is no cursor",
    arguments: ["", "k", "k0", "kzz", "s", "s-1", "t1.2", "t1.1000000000.2", "x1", "k6B"])
  func badText(_ text: String) { #expect(PageCursor(text) == nil) }
}
