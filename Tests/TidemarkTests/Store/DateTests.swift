import Testing
import Tidemark
import TidemarkTestKit

@Suite("Views and queries by date")
struct DateTests {
  let machine = Machine()

  /// The first second of a day of January 2026; the clock begins with the first.
  private func day(_ number: Int64) -> Timestamp {
    Timestamp(seconds: 1_767_225_600 + (number - 1) * 86_400)
  }

  private func put(_ store: Store, _ key: Key, _ value: String, on time: Timestamp?) throws {
    var options = PutOptions()
    options.time = time
    try store.blocking.put(key, value, labels: ["l"], options: options)
    machine.clock.advance(by: .seconds(86_400))
  }

  @Test("an entry dated far ahead hides nothing that was committed by a date")
  func ahead() throws {
    let store = try machine.open()
    try put(store, "a", "1", on: nil)
    try put(store, "b", "1", on: Timestamp(seconds: 4_102_444_800))
    try put(store, "c", "1", on: nil)
    #expect(try store.view(at: day(2)).found() == ["a", "b"])
    #expect(try store.view(at: day(3)).found() == ["a", "b", "c"])
    #expect(try store.view(at: day(9)).sequence == 3)
    let before = Timestamp(seconds: day(1).seconds - 1)
    #expect(try store.view(at: before).sequence == 0)
    #expect(try [before, day(2), day(3), day(9)].map(store.sequence(at:)) == [0, 2, 3, 3])
    #expect(try store.view(at: day(9), by: .ownTime).found() == ["a", "c"])
  }

  @Test("an entry that was added for an earlier day is in that day's state by own time")
  func backdated() throws {
    let store = try machine.open()
    try put(store, "a", "first", on: day(1))
    try put(store, "b", "1", on: day(5))
    try put(store, "c", "1", on: day(2))
    try put(store, "a", "second", on: day(6))
    let view = try store.view(at: day(2), by: .ownTime)
    #expect(try view.state() == ["a": "first", "c": "1"])
    #expect(try view.text(forKey: "a") == "first")
    #expect(try !view.contains("b") && view.entry(forKey: "b") == nil)
    #expect(try view.count() == 2 && view.found(EntryQuery(labels: .all("l"))) == ["a", "c"])
    #expect(try view.labels().map(\.count) == [2])
    #expect(try view.history(ofKey: "a").map(\.sequence) == [1])
    var log = try view.entries(since: 0)
    var seen: [UInt64] = []
    while let entry = try log.next() { seen.append(entry.sequence) }
    #expect(seen == [1, 3])
    #expect(try store.view(at: day(6), by: .ownTime).state() == store.state())
    try store.blocking.delete("a", time: day(8))
    #expect(try store.view(at: day(7), by: .ownTime).text(forKey: "a") == "second")
    #expect(try store.view(at: day(8), by: .ownTime).text(forKey: "a") == nil)
  }

  @Test("a view by own time keeps what it shows from compaction and from later writes")
  func kept() throws {
    let store = try machine.open()
    try put(store, "a", "1", on: day(1))
    try put(store, "a", "2", on: day(9))
    let view = try store.view(at: day(3), by: .ownTime)
    try put(store, "a", "3", on: day(2))
    try store.blocking.compact(dropHistory: true)
    #expect(try view.state() == ["a": "1"])
    #expect(try store.state() == ["a": "3"])
  }

  @Test("a state by own time is refused where a later entry has replaced what is gone")
  func gone() throws {
    let store = try machine.open()
    try put(store, "a", "1", on: day(1))
    try put(store, "a", "2", on: day(9))
    try store.blocking.compact(dropHistory: true)
    try put(store, "b", "1", on: day(3))
    #expect(code { _ = try store.view(at: day(5), by: .ownTime) } == .historyGone)
    #expect(try store.view(at: day(9), by: .ownTime).found() == ["a", "b"])
  }

  @Test("a date before the kept history is refused, also where the last entry of that is gone")
  func dropped() throws {
    let store = try machine.open()
    try put(store, "a", "1", on: nil)
    try put(store, "b", "1", on: nil)
    try store.blocking.delete("b")
    try store.blocking.compact(dropHistory: true)
    #expect(code { _ = try store.view(at: day(2)) } == .historyGone)
    #expect(try store.view(at: day(3)).found() == ["a"])
    machine.clock.advance(by: .seconds(86_400))
    try put(store, "c", "1", on: nil)
    #expect(code { _ = try store.view(at: day(2)) } == .historyGone)
    #expect(try store.view(at: day(3)).found() == ["a"])
    #expect(try store.view(at: day(4)).found() == ["a", "c"])
  }

  @Test("a query takes the entries of a time range, by their own times", arguments: 1...4)
  func range(pageSize: Int) throws {
    let store = try machine.open()
    for (key, number) in [("a", 3), ("b", 40), ("c", 1), ("d", 2), ("e", 4)] as [(Key, Int64)] {
      try put(store, key, "1", on: day(number))
    }
    // The sixth entry has no time of its own, so that of its commit counts.
    try put(store, "f", "1", on: nil)
    func found(_ query: EntryQuery) throws -> [String] {
      var keys: [String] = []
      var page = try store.page(query, limit: pageSize)
      while true {
        keys += page.entries.map(\.key.text)
        guard let next = page.next else { return keys }
        page = try store.page(query, limit: pageSize, after: next)
      }
    }
    #expect(try found(EntryQuery(since: day(2), until: day(4))) == ["a", "d"])
    #expect(try found(EntryQuery(since: day(4))) == ["b", "e", "f"])
    #expect(try found(EntryQuery(until: day(2))) == ["c"])
    let recent = EntryQuery(since: day(2), until: day(30), order: .time, descending: true)
    #expect(try found(recent) == ["f", "e", "a", "d"])
    #expect(try store.count(recent) == 4 && store.count(EntryQuery(since: day(50))) == 0)
    #expect(try found(EntryQuery(labels: .all("l"), since: day(6))) == ["b", "f"])
  }
}
