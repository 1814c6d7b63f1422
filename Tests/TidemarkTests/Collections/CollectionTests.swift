import Testing
import TidemarkEngine
import TidemarkTestKit

import Tidemark
@testable import TidemarkCollections

struct Note: Codable, Identifiable, Equatable, Sendable {
  var id: String
  var text: String
  var tags: [String] = []
  var done: Bool?
}

@Suite("Collections")
struct CollectionTests {
  private func notes() async throws -> (Store, ObjectCollection<Note, String>) {
    let store = try await Store.open(at: .inMemory)
    let schema = CollectionSchema<Note>(labels: { $0.tags.map { EntryLabel($0) } })
    return (store, try store.collection(Note.self, named: "notes", schema))
  }

  @Test("objects are written, read, changed and deleted")
  func basics() async throws {
    let (store, notes) = try await notes()
    let note = Note(id: "1", text: "milk", tags: ["home"])
    try await notes.put(note)
    #expect(try notes.get("1") == note)
    #expect(try notes.get("2") == nil)
    #expect(try store.text(forKey: "notes/1") == #"{"id":"1","tags":["home"],"text":"milk"}"#)
    #expect(try store.count(EntryQuery(labels: .all("home"))) == 1)
    let changed = try await notes.update("1") { $0.done = true }
    #expect(changed?.done == true)
    #expect(try notes.get("1") == changed)
    #expect(try await notes.update("2") { $0.done = true } == nil)
    #expect(try await notes.delete("1"))
    #expect(try await notes.delete("1") == false)
    #expect(try notes.get("1") == nil)
    await #expect(throws: TidemarkError.self) { try await notes.put(Note(id: "", text: "")) }
    try await store.close()
  }

  @Test("all objects come in the order of their ids, as many and by labels as asked")
  func all() async throws {
    let (store, notes) = try await notes()
    try await store.write { batch in
      for number in 0..<20 {
        let tags = number % 2 == 0 ? ["even"] : []
        try batch.put(Note(id: "\(10 + number)", text: "\(number)", tags: tags), in: notes)
      }
      try batch.put("notez", "other")
    }
    #expect(try notes.all().map(\.text) == (0..<20).map { "\($0)" })
    #expect(
      try notes.all(labels: .all("even"), descending: true, limit: 2).map(\.id) == ["28", "26"])
    #expect(try notes.ids().count == 20)
    #expect(try notes.count() == 20)
    #expect(try notes.count(labels: .all("even")) == 10)
    #expect(try await notes.clear(labels: .all("even")) == 10)
    #expect(try notes.count() == 10)
    try await store.close()
  }

  @Test("an update that changes nothing writes nothing, and one that changes the id is refused")
  func updates() async throws {
    let (store, notes) = try await notes()
    try await notes.put(Note(id: "1", text: "milk"))
    let before = store.lastSequence
    try await notes.update("1") { $0.text = "milk" }
    #expect(store.lastSequence == before)
    await #expect(throws: TidemarkError.self) { try await notes.update("1") { $0.id = "2" } }
    struct Own: Error {}
    await #expect(throws: Own.self) { try await notes.update("1") { _ in throw Own() } }
    try await store.close()
  }

  @Test("updates of many tasks are all there")
  func concurrentUpdates() async throws {
    let (store, notes) = try await notes()
    try await notes.put(Note(id: "1", text: ""))
    try await withThrowingTaskGroup { group in
      for _ in 0..<8 {
        group.addTask {
          for _ in 0..<10 { try await notes.update("1") { $0.text += "x" } }
        }
      }
      try await group.waitForAll()
    }
    #expect(try notes.get("1")?.text.count == 80)
    try await store.close()
  }

  @Test("an insert is refused where there is an object")
  func insert() async throws {
    let (store, notes) = try await notes()
    try await notes.insert(Note(id: "1", text: "a"))
    let error = await #expect(throws: TidemarkError.self) {
      try await notes.insert(Note(id: "1", text: "b"))
    }
    #expect(error?.code == .conflict)
    #expect(try notes.get("1")?.text == "a")
    try await store.close()
  }

  @Test("history, views and undo have objects as they were")
  func past() async throws {
    let (store, notes) = try await notes()
    try await notes.put(Note(id: "1", text: "a"))
    let view = try store.view()
    try await notes.update("1") { $0.text = "b" }
    try await notes.delete("1")
    #expect(try notes.history(of: "1").map { $0.object?.text } == [nil, "b", "a"])
    #expect(try notes.at(view).get("1")?.text == "a")
    #expect(try notes.at(view).all().map(\.text) == ["a"])
    #expect(try await notes.undo("1")?.text == "b")
    #expect(try await notes.undo("1") == nil)
    #expect(try notes.get("1") == nil)
    try await notes.put(Note(id: "2", text: "c"))
    #expect(try await notes.undo("2") == nil)
    #expect(try notes.contains("2") == false)
    #expect(try await notes.undo("3") == nil)
    try await store.close()
  }

  @Test("an object that cannot be decoded is named, and the others are delivered when asked for")
  func undecodable() async throws {
    let (store, notes) = try await notes()
    try await notes.put(Note(id: "1", text: "a"))
    try await store.put("notes/2", #"{"id":"2","text":"b","tags":[1]}"#)
    try await store.put("notes/3", "{")
    let error = #expect(throws: TidemarkError.self) { try notes.get("2") }
    #expect(error?.code == .coding)
    #expect(error?.object == ObjectPlace(collection: "notes", id: "2", path: "tags.0"))
    #expect(error.map { "\($0)" }?.contains("collection notes, object 2, field tags.0") == true)
    #expect(throws: TidemarkError.self) { try notes.all() }
    var told: [TidemarkError] = []
    #expect(try notes.all { told.append($0) }.map(\.id) == ["1"])
    #expect(told.map { $0.object?.id } == ["2", "3"])
    // It can be replaced.
    try await notes.put(Note(id: "3", text: "c"))
    #expect(try notes.get("3")?.text == "c")
    try await store.close()
  }

  @Test("ids may be numbers, and names have bounds")
  func names() async throws {
    struct Item: Codable, Identifiable {
      var id: Int
    }
    let store = try await Store.open(at: .inMemory)
    let items = try store.collection(Item.self, named: "items")
    for id in [-5, 0, .max] {
      try await items.put(Item(id: id))
      #expect(try items.get(id)?.id == id)
    }
    #expect(try Set(items.ids()) == [-5, 0, .max])
    // Digits sort as text.
    try await items.put(Item(id: 10))
    try await items.put(Item(id: 9))
    #expect(try items.ids() == [-5, 0, 10, 9, .max].sorted { "\($0)" < "\($1)" })
    for name in ["", "a/b", String(repeating: "n", count: 256), "\0tidemark"] {
      #expect(throws: TidemarkError.self, "\(name)") {
        try store.collection(Item.self, named: name)
      }
    }
    try await store.close()
  }

  @Test("an object that one way of reading has found is decoded for none of the others")
  func cachedAnyWay() async throws {
    struct Item: Codable, Identifiable {
      var id: Int
      var group: Int
    }
    for way in 0..<5 {
      let store = try await Store.open(at: .inMemory)
      let decoded = Lock(0)
      let coding = CollectionCoding<Item>(
        encode: { Array("\($0.id)/\($0.group)".utf8) },
        decode: { bytes in
          decoded.withLock { $0 += 1 }
          let parts = String(decoding: bytes, as: UTF8.self).split(separator: "/").map { Int($0)! }
          return Item(id: parts[0], group: parts[1])
        })
      let items = try store.collection(
        named: "items", coding: coding,
        CollectionSchema(indexes: [ObjectIndex("group", \.group)])
      ) { $0.id }
      for id in 0..<300 { try await items.put(Item(id: id, group: 1)) }
      decoded.withLock { $0 = 0 }
      let ways: [() throws -> Int] = [
        { try items.all().count }, { try items.find(\.group == 1).count },
        { try items.at(store.view()).all().count },
        { try items.find(scanning: true).count },
        { try (0..<300).count { try items.get($0) != nil } },
      ]
      #expect(try ways[way]() == 300)
      #expect(decoded.withLock { $0 } == 300)
      for way in ways { #expect(try way() == 300) }
      #expect(decoded.withLock { $0 } == 300, "way \(way)")
      try await store.close()
    }
  }

  @Test(
    "no reader sees an object older than one that it saw, or than a write that returned")
  func monotonic() async throws {
    let store = try await Store.open(at: .inMemory)
    let items = try store.collection(
      named: "items",
      coding: CollectionCoding<Int>(
        encode: { [UInt8($0 & 255), UInt8($0 >> 8)] }, decode: { Int($0[0]) | Int($0[1]) << 8 }),
      id: { $0 & 1 })
    let written = Lock([0, 1])
    try await items.put(0)
    try await items.put(1)
    try await withThrowingTaskGroup(of: Void.self) { group in
      group.addTask {
        for number in 2..<20_000 {
          try items.store.blocking.write { try $0.put(number, in: items) }
          written.withLock { $0[number & 1] = number }
        }
        written.withLock { $0 = [-1, -1] }
      }
      for id in 0..<2 {
        group.addTask {
          var last = 0
          while true {
            let least = written.withLock { $0[id] }
            if least < 0 { return }
            let now = try #require(try items.get(id))
            guard now >= max(last, least) else {
              Issue.record("\(now) after \(last), when \(least) was written")
              return
            }
            last = now
          }
        }
      }
      try await group.waitForAll()
    }
    try await store.close()
  }

  @Test(
    "an object in memory is refused while the store is suspended, and after it is closed")
  func refused() async throws {
    let store = try Machine().open(usesThreads: true)
    let items = try store.collection(Int.self, named: "items", id: { $0 })
    try await items.put(1)
    #expect(try items.get(1) == 1)
    try await store.suspend()
    #expect(throws: TidemarkError.self) { try items.get(1) }
    try await store.resume()
    #expect(try items.get(1) == 1)
    try await store.close()
    #expect(throws: TidemarkError.self) { try items.get(1) }
  }

  @Test("a walk over objects in memory ends with an error once the store is suspended")
  func walkRefused() async throws {
    let store = try Machine().open(usesThreads: true)
    let items = try store.collection(Int.self, named: "items", id: { $0 })
    for id in 0..<100 { try await items.put(id) }
    #expect(try items.all().count == 100)
    var seen = 0
    let error = #expect(throws: TidemarkError.self) {
      try items.forEach { _ in
        seen += 1
        if seen == 10 { try? store.blocking.suspend() }
      }
    }
    #expect(error?.code == .suspended)
    #expect(seen == 10)
    try await store.resume()
    #expect(try items.all().count == 100)
    try await store.close()
  }

  @Test("an object that was read comes from the cache until it is written again")
  func cached() async throws {
    let store = try await Store.open(at: .inMemory)
    let decoded = Lock(0)
    let coding = CollectionCoding<String>(
      encode: { Array($0.utf8) },
      decode: { bytes in
        decoded.withLock { $0 += 1 }
        return String(decoding: bytes, as: UTF8.self)
      })
    let texts = try store.collection(named: "texts", coding: coding) { String($0.prefix(1)) }
    try await texts.put("abc")
    for _ in 0..<3 { #expect(try texts.get("a") == "abc") }
    #expect(try texts.all() == ["abc"])
    #expect(decoded.withLock { $0 } == 1)
    try await texts.put("abd")
    #expect(try texts.get("a") == "abd")
    #expect(decoded.withLock { $0 } == 2)
    try await store.close()
  }
}
