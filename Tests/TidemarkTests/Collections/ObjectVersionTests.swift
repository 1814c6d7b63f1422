import Testing
import TidemarkEngine
import TidemarkTestKit

import Tidemark
@testable import TidemarkCollections

@Suite("Versions of objects")
struct ObjectVersionTests {
  struct Old: Codable, Identifiable, Equatable, Sendable {
    struct Part: Codable, Equatable, Sendable {
      var id: Int?
      var name: String
    }
    var id: String
    var name: String?
    var part: Part?
    var parts: [Part] = []
    var table: [String: Int] = [:]
  }

  private func rewritten(
    _ text: String, _ change: @escaping @Sendable (inout Old) -> Void
  ) async throws -> String {
    let store = try await Store.open(at: .inMemory)
    let olds = try store.collection(Old.self, named: "c")
    try await store.put("c/1", text)
    var object = try #require(try olds.get("1"))
    change(&object)
    try await olds.put(object)
    let result = try #require(try store.text(forKey: "c/1"))
    try await store.close()
    return result
  }

  @Test("fields that a type does not know survive at every level")
  func survive() async throws {
    let text = try await rewritten(
      #"{"new":{"x":[1, 2]},"id":"1","part":{"name":"p","colour":"red"},"#
        + #""parts":[],"table":{"a":1}}"#
    ) { $0.name = "n" }
    #expect(
      text == #"{"id":"1","name":"n","new":{"x":[1, 2]},"part":{"colour":"red","name":"p"},"#
        + #""parts":[],"table":{"a":1}}"#)
  }

  @Test("a field that the type knows and removes is gone, also from a dictionary")
  func removed() async throws {
    let text = try await rewritten(
      #"{"id":"1","name":"n","part":{"name":"p","z":1},"parts":[],"table":{"a":1,"b":2},"y":0}"#
    ) {
      $0.name = nil
      $0.part = nil
      $0.table["a"] = nil
    }
    #expect(text == #"{"id":"1","parts":[],"table":{"b":2},"y":0}"#)
  }

  @Test("elements of an array keep theirs by their id, wherever they stand")
  func arrays() async throws {
    let parts =
      #"[{"id":1,"name":"a","u":1},{"id":2,"name":"b","u":2},{"id":3,"name":"c","u":3}]"#
    let text = try await rewritten(#"{"id":"1","parts":\#(parts),"table":{}}"#) {
      $0.parts.reverse()
      $0.parts.remove(at: 1)
      $0.parts.append(Old.Part(id: 4, name: "d"))
    }
    #expect(
      text == #"{"id":"1","parts":[{"id":3,"name":"c","u":3},{"id":1,"name":"a","u":1},"#
        + #"{"id":4,"name":"d"}],"table":{}}"#)
  }

  @Test("a name that is written with escapes is the same name")
  func escapes() async throws {
    #expect(
      try await rewritten(#"{"\u0069d":"1","n\u0061me":"n","parts":[],"table":{},"\u00e9":1}"#) {
        $0.name = nil
      } == #"{"id":"1","parts":[],"table":{},"\u00e9":1}"#)
  }

  @Test("random texts keep what nobody has asked for, and become what they were")
  func random() async throws {
    let seed = UInt64.random(in: 0 ... .max)
    print("seed \(seed)")
    var random = SeededGenerator(seed: seed)
    for _ in 0..<300 {
      var fields = [#""id":"1""#, #""parts":[]"#, #""table":{}"#]
      for number in 0..<Int.random(in: 0..<6, using: &random) {
        fields.append("\"u\(number)\":\(Self.value(&random, depth: 0))")
      }
      fields.shuffle(using: &random)
      let text = try await rewritten("{" + fields.joined(separator: ",") + "}") { _ in }
      #expect(text == "{" + fields.sorted().joined(separator: ",") + "}")
    }
  }

  private static func value(_ random: inout SeededGenerator, depth: Int) -> String {
    switch Int.random(in: 0..<(depth > 3 ? 3 : 5), using: &random) {
    case 0: "null"
    case 1: "\(Int.random(in: -9...9, using: &random))e1"
    case 2: #""\u0041{[""#
    case 3: "[" + value(&random, depth: depth + 1) + ",{}]"
    default: #"{"k":"# + value(&random, depth: depth + 1) + "}"
    }
  }

  @Test("older objects are read by their upcasts, and stay as they are until they are written")
  func upcasts() async throws {
    let store = try await Store.open(at: .inMemory)
    struct First: Codable, Identifiable {
      var id: String
      var first: String
      var last: String
    }
    struct Third: Codable, Identifiable, Equatable {
      var id: String
      var fullName: String
      var age: Int
    }
    let first = try store.collection(
      First.self, named: "people", CollectionSchema(version: 1))
    try await first.put(First(id: "1", first: "Ada", last: "Lovelace"))
    let third = try store.collection(
      Third.self, named: "people",
      CollectionSchema(
        version: 3,
        upcasts: [
          Upcast(from: 1) { person in
            guard case .string(let first) = person["first"], case .string(let last) = person["last"]
            else { return }
            person["fullName"] = .string("\(first) \(last)")
            person["first"] = nil
            person["last"] = nil
          },
          Upcast(from: 2) { $0["age"] = .integer(36) },
        ]))
    let ada = Third(id: "1", fullName: "Ada Lovelace", age: 36)
    #expect(try third.get("1") == ada)
    #expect(try third.all() == [ada])
    #expect(try store.text(forKey: "people/1")?.contains("first") == true)
    try await third.update("1") { $0.age = 37 }
    #expect(
      try store.text(forKey: "people/1")
        == #"{"age":37,"fullName":"Ada Lovelace","id":"1"}"#)
    #expect(try third.history(of: "1").map { $0.object?.age } == [37, 36])
    try await store.undo(since: 1)
    #expect(try third.get("1") == ada)
    #expect(throws: TidemarkError.self) {
      try store.collection(
        Third.self, named: "people",
        CollectionSchema(version: 1, upcasts: [Upcast(from: 1) { _ in }]))
    }
    try await store.close()
  }

  @Test("an object of a newer version keeps it when an older program writes it")
  func newer() async throws {
    let store = try await Store.open(at: .inMemory)
    let newer = try store.collection(
      Old.self, named: "c",
      CollectionSchema(version: 2, upcasts: [Upcast(from: 1) { $0["name"] = .string("upcast") }]))
    let older = try store.collection(Old.self, named: "c")
    try await newer.put(Old(id: "1", name: "kept"))
    try await older.update("1") { $0.table["a"] = 1 }
    #expect(try newer.get("1")?.name == "kept")
    try await older.put(Old(id: "1", name: "again"))
    #expect(try newer.get("1")?.name == "again")
    try await store.close()
  }
}
