import Testing
import TidemarkEngine
import TidemarkTestKit

import Tidemark
@testable import TidemarkCollections

@Suite("New fields")
struct DefaultsTests {
  struct First: Codable, Identifiable, Sendable {
    struct Part: Codable, Hashable, Sendable { var name: String }
    var id: String
    var title = ""
    var parts: [Part] = []
    var set: Set<Part> = []
    var table: [String: Part] = [:]
    var cover: Part?
  }

  struct Second: Codable, Identifiable, Equatable, Sendable {
    struct Part: Codable, Hashable, Sendable {
      var name: String
      var size: Int
    }
    struct Style: Codable, Equatable, Sendable { var colour: String }
    var id: String
    var title = ""
    var parts: [Part] = []
    var set: Set<Part> = []
    var table: [String: Part] = [:]
    var cover: Part?
    var colour = "none"
    var style = Style(colour: "x")
    var weight: Double
    var nickname: String?
  }

  private static let defaults: [String: JSONValue] = [
    "colour": "none", "style": ["colour": "x"], "weight": 0.5, "parts.*.size": 1, "set.*.size": 2,
    "table.*.size": 3, "cover.size": 4,
  ]

  private static func schema(
    _ defaults: [String: JSONValue] = Self.defaults
  ) -> CollectionSchema<Second> {
    CollectionSchema(
      indexes: [ObjectIndex("colour", \.colour), ObjectIndex(text: "text", \.title)],
      defaults: defaults)
  }

  private func filled(_ count: Int) async throws -> (Store, ObjectCollection<First, String>) {
    let store = try await Store.open(at: .inMemory)
    let firsts = try store.collection(First.self, named: "c")
    let part = First.Part(name: "p")
    try await store.write { batch in
      for number in 0..<count {
        try batch.put(
          First(
            id: "\(number)", title: "title \(number)", parts: [part, part], set: [part],
            table: ["size": part], cover: part),
          in: firsts)
      }
    }
    return (store, firsts)
  }

  @Test("an object of before is read, found, searched and observed with the defaults")
  func readers() async throws {
    let (store, firsts) = try await filled(200)
    let seconds = try store.collection(Second.self, named: "c", Self.schema())
    try await seconds.indexesBuilt()
    let object = try #require(try seconds.get("7"))
    #expect(object.parts.map(\.size) == [1, 1] && object.set.map(\.size) == [2])
    #expect(object.table["size"]?.size == 3 && object.cover?.size == 4)
    #expect(object.colour == "none" && object.style.colour == "x" && object.weight == 0.5)
    #expect(object.nickname == nil)
    #expect(try seconds.all().count == 200)
    #expect(try seconds.find(\.colour == "none").count == 200)
    #expect(try seconds.search("text", "title 7").count == 11)
    #expect(try seconds.indexes.map(\.isComplete) == [true, true])
    var lists = seconds.observe(\.colour == "none").makeAsyncIterator()
    #expect(try await lists.next()?.count == 200)
    // An older program adds an object that lacks the fields.
    try await firsts.put(First(id: "x", title: "x"))
    #expect(try await lists.next()?.count == 201)
    try await seconds.update("7") { $0.colour = "red" }
    #expect(try seconds.find(\.colour == "red").map(\.id) == ["7"])
    #expect(try seconds.core.firstDisagreement() == nil)
    try await store.close()
  }

  @Test("a field that is there is never taken from the defaults, and unknown ones stay")
  func present() async throws {
    let store = try await Store.open(at: .inMemory)
    let seconds = try store.collection(Second.self, named: "c", Self.schema())
    let text =
      #"{"colour":"","id":"1","new":{"x":1},"parts":[{"name":"p","new":1,"size":0}],"#
      + #""set":[],"table":{},"title":"","weight":0}"#
    try await store.put("c/1", text)
    let object = try #require(try seconds.get("1"))
    #expect(object.colour == "" && object.weight == 0 && object.parts.map(\.size) == [0])
    try await seconds.update("1") { $0.title = "t" }
    let written = try #require(try store.text(forKey: "c/1"))
    #expect(written.contains(#""new":{"x":1}"#) && written.contains(#""new":1,"size":0}]"#))
    #expect(written.contains(#""style":{"colour":"x"}"#) && !written.contains("nickname"))
    // A default stands in for a field only.
    for text in ["", "{", #"{"id":"1"} {"id":"1"}"#, #"{"id":"1","colour":null}"#, #"{"id":"1"}"#] {
      try await store.put("c/1", text)
      #expect(throws: TidemarkError.self, "\(text)") { try seconds.get("1") }
    }
    try await store.close()
  }

  @Test("an index is built anew when upcasts or defaults say something else of the same bytes")
  func rebuilt() async throws {
    let (store, _) = try await filled(30)
    let without = try store.collection(Second.self, named: "c", Self.schema([:]))
    var told = 0
    #expect(try without.find(\.colour == "none") { _ in told += 1 }.isEmpty && told == 30)
    let error = #expect(throws: TidemarkError.self) { try without.find(\.colour == "none") }
    #expect(error?.message.contains("defaults") == true)
    var defaults = Self.defaults
    for colour in ["none", "red", "blue"] {
      defaults["colour"] = .string(colour)
      let seconds = try store.collection(Second.self, named: "c", Self.schema(defaults))
      try await seconds.indexesBuilt()
      #expect(try seconds.count(where: \.colour == colour) == 30)
      #expect(try seconds.core.firstDisagreement() == nil)
    }
    for (version, colour) in [(UInt32(1), "green"), (2, "white")] {
      var schema = Self.schema(defaults)
      schema.version = version
      schema.upcasts = [Upcast(from: version - 1) { $0["colour"] = .string(colour) }]
      let seconds = try store.collection(Second.self, named: "c", schema)
      try await seconds.indexesBuilt()
      #expect(try seconds.count(where: \.colour == colour) == 30)
      #expect(try seconds.core.firstDisagreement() == nil)
    }
    try await store.close()
  }

  @Test("defaults are for objects as JSON")
  func refused() async throws {
    let store = try await Store.open(at: .inMemory)
    #expect(throws: TidemarkError.self) {
      try store.collection(
        named: "b", coding: .bytes, CollectionSchema(defaults: ["a": 1])
      ) { $0 }
    }
    #expect(throws: TidemarkError.self) {
      try store.collection(
        First.self, named: "c", CollectionSchema(defaults: ["title": .number("one")]))
    }
    try await store.close()
  }
}
