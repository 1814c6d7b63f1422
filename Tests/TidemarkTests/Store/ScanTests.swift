import Testing
import Tidemark

@Suite("Scans")
struct ScanTests {
  let store: Store

  init() throws {
    store = try Machine().open()
    let write = store.blocking
    try write.put("note/2", "b", labels: ["inbox", "old"], options: PutOptions(time: at(30)))
    try write.put("note/1", "a", labels: ["inbox"], options: PutOptions(time: at(20)))
    try write.put("task/1", "c", labels: ["done", "old"], options: PutOptions(time: at(10)))
    try write.put("note/3", "d", options: PutOptions(time: at(40)))
    try write.put("gone", "e", labels: ["inbox"])
    try write.delete("gone")
  }

  private func at(_ seconds: Int64) -> Timestamp { Timestamp(seconds: seconds) }

  @Test("keys come in byte order, either way")
  func order() throws {
    #expect(try store.found() == ["note/1", "note/2", "note/3", "task/1"])
    #expect(
      try store.found(EntryQuery(descending: true)) == ["task/1", "note/3", "note/2", "note/1"])
  }

  @Test("a prefix, a range and both together narrow the keys")
  func ranges() throws {
    #expect(try store.found(EntryQuery(prefix: "note/")) == ["note/1", "note/2", "note/3"])
    #expect(try store.found(EntryQuery(from: "note/2", upTo: "task/1")) == ["note/2", "note/3"])
    #expect(try store.found(EntryQuery(prefix: "note/", from: "note/2")) == ["note/2", "note/3"])
    #expect(try store.found(EntryQuery(prefix: "note/", upTo: "note/2")) == ["note/1"])
    #expect(try store.found(EntryQuery(prefix: "note/", from: "a", upTo: "z")).count == 3)
    #expect(try store.found(EntryQuery(prefix: "note/", from: "o")) == [])
    #expect(try store.found(EntryQuery(prefix: "note/", upTo: "note/")) == [])
    #expect(try store.found(EntryQuery(from: "z", upTo: "a")) == [])
    #expect(
      try store.found(EntryQuery(prefix: "note/", from: "note/2", descending: true))
        == ["note/3", "note/2"])
  }

  @Test("labels combine: all, any, not")
  func labels() throws {
    #expect(try store.found(EntryQuery(labels: .all("inbox"))) == ["note/1", "note/2"])
    #expect(try store.found(EntryQuery(labels: .all("inbox", "old"))) == ["note/2"])
    #expect(try store.found(EntryQuery(labels: .any("done", "inbox"))).count == 3)
    #expect(try store.found(EntryQuery(labels: .not("old"))) == ["note/1", "note/3"])
    #expect(try store.found(EntryQuery(labels: .all("old").not("done"))) == ["note/2"])
    #expect(
      try store.found(EntryQuery(prefix: "task/", labels: .all("old").any("done", "x"))) == [
        "task/1"
      ])
    #expect(try store.found(EntryQuery(labels: .all("never used"))) == [])
  }

  @Test("the order of sequences is that of the last write")
  func sequenceOrder() throws {
    #expect(
      try store.found(EntryQuery(order: .sequence)) == ["note/2", "note/1", "task/1", "note/3"])
    #expect(
      try store.found(EntryQuery(prefix: "note/", order: .sequence, descending: true))
        == ["note/3", "note/1", "note/2"])
  }

  @Test("the order of times is that of the entries' own times")
  func timeOrder() throws {
    #expect(try store.found(EntryQuery(order: .time)) == ["task/1", "note/1", "note/2", "note/3"])
    #expect(
      try store.found(EntryQuery(order: .time, descending: true, limit: 2)) == ["note/3", "note/2"])
  }

  @Test("a limit ends a scan")
  func limit() throws {
    #expect(try store.found(EntryQuery(limit: 2)) == ["note/1", "note/2"])
    #expect(try store.found(EntryQuery(limit: 0)) == [])
    #expect(try store.found(EntryQuery(limit: -1)) == [])
    #expect(try store.count(EntryQuery(limit: 3)) == 3)
  }

  @Test("rows carry values and metadata, or no values when they are not wanted")
  func rows() throws {
    var rows = try store.entries(prefix: "note/", labels: .all("old"))
    let entry = try #require(try rows.next())
    #expect(entry.key == "note/2")
    #expect(entry.value.text == "b")
    #expect(entry.labels == ["inbox", "old"])
    #expect(entry.time == at(30))
    #expect(try rows.next() == nil)
    #expect(try rows.next() == nil)
    var bare = try store.entries(EntryQuery(labels: .all("old"), values: false))
    let without = try #require(try bare.next())
    #expect(without.value == [])
    #expect(without.valueLength == 1)
  }

  @Test("a scan in place sees keys and values")
  func inPlace() throws {
    var text = ""
    try store.scan(EntryQuery(prefix: "note/")) { key, value in
      text += Key([UInt8](key)).text + "=" + Key([UInt8](value)).text + " "
    }
    #expect(text == "note/1=a note/2=b note/3=d ")
  }

  @Test("a scan in place ends with what its closure throws")
  func inPlaceError() throws {
    struct Stop: Error {}
    var seen = 0
    #expect(throws: Stop.self) {
      try store.scan { _, _ in
        seen += 1
        if seen == 2 { throw Stop() }
      }
    }
    #expect(seen == 2)
  }

  @Test("counts follow the query")
  func counts() throws {
    #expect(try store.count() == 4)
    #expect(try store.count(EntryQuery(prefix: "note/")) == 3)
    #expect(try store.count(EntryQuery(labels: .all("inbox"), order: .time)) == 2)
    #expect(try store.count(EntryQuery(prefix: "nothing")) == 0)
  }

  @Test("labels are counted by the keys that carry them now")
  func labelCounts() throws {
    #expect(
      try store.labels() == [
        LabelCount(label: "done", count: 1), LabelCount(label: "inbox", count: 2),
        LabelCount(label: "old", count: 2),
      ])
  }

  @Test("rows show the state in which they were begun")
  func stable() throws {
    for i in 0..<300 { try store.blocking.put("many/\(1000 + i)", "before") }
    var rows = try store.entries(prefix: "many/")
    #expect(try rows.next()?.key == "many/1000")
    try store.blocking.clear(prefix: "many/12")
    try store.blocking.put("many/1299", "after")
    try store.blocking.put("many/2", "new")
    var (count, last) = (1, "")
    while let entry = try rows.next() {
      count += 1
      last = entry.value.text
      #expect(entry.value.text == "before")
    }
    #expect(count == 300)
    #expect(last == "before")
  }
}

extension [UInt8] {
  /// A copy, byte by byte: tests need no faster one.
  init(_ span: RawSpan) { self = span.withBytes { $0 } }
}

extension RawSpan {
  /// Calls `body` with a copy of the bytes.
  func withBytes<R>(_ body: ([UInt8]) -> R) -> R {
    body((0..<byteCount).map { unsafeLoad(fromByteOffset: $0, as: UInt8.self) })
  }
}
