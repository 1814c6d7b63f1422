import Foundation
import Testing
import TidemarkEngine
import TidemarkNDJSON
import TidemarkTestKit

import Tidemark
@testable import TidemarkCollections

/// An older program, which knows a person's name only, changes what a newer one wrote.
@Suite("An older program")
struct OlderProgramTests {
  struct Person: Codable, Hashable, Sendable {
    var name: String
  }

  struct Member: Codable, Hashable, Sendable {
    var id: UUID
    var name: String
  }

  enum Role: String, Codable, Sendable { case owner, guest, clerk }

  indirect enum Shape: Codable, Equatable, Sendable {
    case person(Person)
    case pair(left: Person, right: Person)
    case group([Shape])
  }

  struct List: Codable, Identifiable, Sendable {
    var id: String
    var title = ""
    var people: [Person]?
    var set: Set<Person>?
    var grid: [[Person]]?
    var byName: [String: Person]?
    var byRole: [Role: Person]?
    var groups: [Role: Set<Person>]?
    var shape: Shape?
    var home: Person?
    var work: Person?
    var members: [Member?]?
    var lead: Member?
  }

  private func rewritten(
    _ fields: String, _ change: @escaping @Sendable (inout List) -> Void
  ) async throws -> String {
    try await rewritten(fields, as: List.self, change)
  }

  private func rewritten<Object: Codable & Identifiable & Sendable>(
    _ fields: String, as type: Object.Type, _ change: @escaping @Sendable (inout Object) -> Void
  ) async throws -> String where Object.ID == String {
    let store = try await Store.open(at: .inMemory)
    let lists = try store.collection(type, named: "c")
    try await store.put("c/1", #"{"id":"1",\#(fields),"title":""}"#)
    try await lists.update("1", change)
    let text = try #require(try store.text(forKey: "c/1"))
    try await store.close()
    return text
  }

  /// A person as the newer program writes it.
  private static func json(_ name: String, _ phone: Int? = nil) -> String {
    #"{"name":"\#(name)""# + (phone.map { #","phone":\#($0)"# } ?? "") + "}"
  }

  private static let abc = [("a", 1), ("b", 2), ("c", 3)].map { json($0, $1) }
  private static let array = "[" + abc.joined(separator: ",") + "]"
  private static let roles = #"["owner",\#(abc[0]),"guest",\#(abc[1]),"clerk",\#(abc[2])]"#

  @Test(
    "a change elsewhere leaves every unknown field where it was",
    arguments: [
      #""people":\#(array)"#, #""set":\#(array)"#, #""grid":[\#(array),[],\#(array)]"#,
      #""byName":{"x":\#(abc[0]),"y":\#(abc[1])}"#, #""byRole":\#(roles)"#,
      #""groups":["owner",\#(array),"guest",[\#(json("a", 9))]]"#,
      #""shape":{"group":{"_0":[{"pair":{"left":\#(abc[0]),"right":\#(abc[1])}}]}}"#,
      #""home":\#(abc[0])"#,
      // To a program that does not know phones some of these are the same person.
      #""people":[\#(json("a", 1)),\#(json("a", 2)),\#(json("a"))]"#,
      #""set":[\#(json("a", 1)),\#(json("a", 2)),\#(json("b"))]"#,
    ])
  func elsewhere(fields: String) async throws {
    let text = try await rewritten(fields) { $0.title = "t" }
    #expect(text.contains(fields) && text.contains(#""title":"t""#), "\(text)")
  }

  @Test("elements of an array without ids keep theirs wherever they go, and new ones have none")
  func arrays() async throws {
    let fields = #""people":\#(Self.array)"#
    let moved = try await rewritten(fields) { $0.people?.reverse() }
    #expect(moved.contains("[\(Self.abc[2]),\(Self.abc[1]),\(Self.abc[0])]"), "\(moved)")
    let replaced = try await rewritten(fields) {
      $0.people?.remove(at: 0)
      $0.people?.append(Person(name: "d"))
    }
    #expect(replaced.contains("[\(Self.abc[1]),\(Self.abc[2]),\(Self.json("d"))]"), "\(replaced)")
    let doubled = try await rewritten(fields) { $0.people?.append(Person(name: "a")) }
    #expect(
      doubled.contains("[\(Self.json("a")),\(Self.abc[1]),\(Self.abc[2]),\(Self.json("a"))]"),
      "\(doubled)")
    let edited = try await rewritten(fields) { $0.people?[0].name = "e" }
    #expect(edited.contains("[\(Self.json("e")),\(Self.abc[1]),\(Self.abc[2])]"), "\(edited)")
  }

  @Test("elements of a set and of arrays within an array keep theirs")
  func sets() async throws {
    let inserted = try await rewritten(#""set":\#(Self.array)"#) {
      $0.set?.insert(Person(name: "aa"))
      $0.set?.remove(Person(name: "b"))
    }
    #expect(
      inserted.contains("[\(Self.json("aa")),\(Self.abc[0]),\(Self.abc[2])]")
        || inserted.contains("[\(Self.abc[0]),\(Self.json("aa")),\(Self.abc[2])]"), "\(inserted)")
    let moved = try await rewritten(
      #""grid":[[\#(Self.abc[0])],[\#(Self.abc[1]),\#(Self.abc[2])]]"#
    ) {
      guard let last = $0.grid?[1].popLast() else { return }
      $0.grid?[0].append(last)
    }
    #expect(moved.contains("[[\(Self.abc[0]),\(Self.abc[2])],[\(Self.abc[1])]]"), "\(moved)")
  }

  @Test("values of dictionaries go with their keys, or with the values that were moved")
  func dictionaries() async throws {
    let fields = #""byName":{"x":\#(Self.abc[0]),"y":\#(Self.abc[1])}"#
    let edited = try await rewritten(fields) { $0.byName?["x"]?.name = "z" }
    #expect(edited.contains(#"{"x":\#(Self.json("z", 1)),"y":\#(Self.abc[1])}"#), "\(edited)")
    let swapped = try await rewritten(fields) {
      let (x, y) = ($0.byName?["x"], $0.byName?["y"])
      $0.byName?["x"] = y
      $0.byName?["y"] = x
    }
    #expect(swapped.contains(#"{"x":\#(Self.abc[1]),"y":\#(Self.abc[0])}"#), "\(swapped)")
    let copied = try await rewritten(fields) {
      let y = $0.byName?["y"]
      $0.byName?["x"] = y
    }
    #expect(copied.contains(#"{"x":\#(Self.json("b")),"y":\#(Self.abc[1])}"#), "\(copied)")
    let role = try await rewritten(#""byRole":\#(Self.roles)"#) {
      $0.byRole?[.guest]?.name = "z"
      $0.byRole?[.owner] = nil
    }
    #expect(
      role.contains(#"["clerk",\#(Self.abc[2]),"guest",\#(Self.json("z", 2))]"#), "\(role)")
    let group = try await rewritten(#""groups":["owner",\#(Self.array),"guest",[]]"#) {
      $0.groups?[.owner]?.remove(Person(name: "b"))
    }
    #expect(
      group.contains(#"["guest",[],"owner",[\#(Self.abc[0]),\#(Self.abc[2])]]"#), "\(group)")
  }

  @Test("a property that becomes another's value does not keep what it had")
  func properties() async throws {
    let fields = #""home":\#(Self.abc[0]),"work":\#(Self.abc[1])"#
    let swapped = try await rewritten(fields) { ($0.home, $0.work) = ($0.work, $0.home) }
    #expect(!swapped.contains("phone"), "\(swapped)")
    let edited = try await rewritten(fields) { $0.home?.name = "z" }
    #expect(edited.contains(#""home":\#(Self.json("z", 1)),"id""#), "\(edited)")
    let ids = [UUID(), UUID()]
    let lead = #"{"id":"\#(ids[0].uuidString.lowercased())","name":"a","phone":1}"#
    let other = try await rewritten(#""lead":\#(lead)"#) { $0.lead = Member(id: ids[1], name: "a") }
    #expect(!other.contains("phone"), "\(other)")
    let same = try await rewritten(#""lead":\#(lead)"#) { $0.lead?.name = "b" }
    #expect(same.contains(#""name":"b","phone":1"#), "\(same)")
    let members = try await rewritten(#""members":[null,\#(lead)]"#) {
      $0.members = [Member(id: ids[1], name: "n"), Member(id: ids[0], name: "m"), nil]
    }
    #expect(members.contains(#""name":"m","phone":1},null]"#), "\(members)")
    #expect(members.contains(#""name":"n"},"#), "\(members)")
  }

  @Test("payloads of a case keep theirs while the case is the same")
  func payloads() async throws {
    let pair = #""shape":{"pair":{"left":\#(Self.abc[0]),"right":\#(Self.abc[1])}}"#
    let edited = try await rewritten(pair) {
      $0.shape = .pair(left: Person(name: "z"), right: Person(name: "b"))
    }
    #expect(
      edited.contains(#"{"left":\#(Self.json("z", 1)),"right":\#(Self.abc[1])}"#), "\(edited)")
    let other = try await rewritten(pair) { $0.shape = .person(Person(name: "a")) }
    #expect(other.contains(#""shape":{"person":{"_0":\#(Self.json("a"))}}"#), "\(other)")
    let swapped = try await rewritten(pair) {
      $0.shape = .pair(left: Person(name: "b"), right: Person(name: "a"))
    }
    #expect(!swapped.contains("phone"), "\(swapped)")
  }

  struct Base: Codable, Sendable {
    var people: [Person]
  }

  struct Derived: Codable, Identifiable, Sendable {
    enum Names: String, CodingKey { case id, title, rows, points }
    var id: String
    var title: String
    var rows: [[Person]] = []
    var point: Person
    var base: Base

    init(from decoder: any Decoder) throws {
      let fields = try decoder.container(keyedBy: Names.self)
      id = try fields.decode(String.self, forKey: .id)
      title = try fields.decode(String.self, forKey: .title)
      var list = try fields.nestedUnkeyedContainer(forKey: .rows)
      while !list.isAtEnd {
        var row: [Person] = []
        var inner = try list.nestedUnkeyedContainer()
        while !inner.isAtEnd { row.append(try inner.decode(Person.self)) }
        rows.append(row)
      }
      let nested = try fields.nestedContainer(keyedBy: JSONKey.self, forKey: .points)
      point = try nested.decode(Person.self, forKey: JSONKey("p"))
      base = try Base(from: fields.superDecoder())
    }

    func encode(to encoder: any Encoder) throws {
      var fields = encoder.container(keyedBy: Names.self)
      try fields.encode(id, forKey: .id)
      try fields.encode(title, forKey: .title)
      var list = fields.nestedUnkeyedContainer(forKey: .rows)
      for row in rows {
        var inner = list.nestedUnkeyedContainer()
        for person in row { try inner.encode(person) }
      }
      var nested = fields.nestedContainer(keyedBy: JSONKey.self, forKey: .points)
      try nested.encode(point, forKey: JSONKey("p"))
      try base.encode(to: fields.superEncoder())
    }
  }

  @Test("a rewrite keeps unknown fields in containers that a type or its superclass opens by hand")
  func containers() async throws {
    let fields =
      #""points":{"p":\#(Self.abc[0]),"q":1},"rows":[[\#(Self.abc[0]),\#(Self.abc[1])]],"#
      + #""super":{"kind":7,"people":\#(Self.array)}"#
    let text = try await rewritten(fields, as: Derived.self) { list in
      list.base.people.swapAt(0, 2)
      list.rows = [[list.rows[0][1]], [list.rows[0][0], Person(name: "z")]]
      list.point.name = "y"
    }
    #expect(text.contains(#"{"p":\#(Self.json("y", 1)),"q":1}"#), "\(text)")
    #expect(
      text.contains(#"[[\#(Self.abc[1])],[\#(Self.abc[0]),\#(Self.json("z"))]]"#), "\(text)")
    #expect(
      text.contains(#"{"kind":7,"people":[\#(Self.abc[2]),\#(Self.abc[1]),\#(Self.abc[0])]}"#),
      "\(text)")
  }

  @Test(
    "an update that changes nothing writes nothing, whatever the order and form of what is stored",
    arguments: [
      #""set":[\#(json("b")),\#(json("c")),\#(json("a"))]"#,
      #""byRole":["owner",\#(json("b")),"clerk",\#(json("a"))]"#,
      #""groups":["owner",[\#(json("b")),\#(json("a"))],"guest",[\#(json("z"))]]"#,
      #""byName" : {"y":\#(json("b")),"x":\#(json("a"))}"#, #""lead":null,"title":"t""#,
    ])
  func unchanged(fields: String) async throws {
    let store = try await Store.open(at: .inMemory)
    let lists = try store.collection(
      List.self, named: "c", CollectionSchema(version: 2, upcasts: [Upcast(from: 1) { _ in }]))
    try await store.put("c/1", #"{"id":"1",\#(fields),"title":""}"#)
    let before = store.lastSequence
    try await lists.update("1") { list in
      for number in 0..<100 { list.set?.insert(Person(name: "\(number)")) }
      for number in 0..<100 { list.set?.remove(Person(name: "\(number)")) }
      list.byRole?[.guest] = Person(name: "g")
      list.byRole?[.guest] = nil
    }
    #expect(store.lastSequence == before)
    try await store.close()
  }

  @Test("equal sets and dictionaries are equal bytes, however they came about")
  func order() throws {
    struct Both: Codable {
      var set: Set<Int> = []
      var nested: Set<Set<String>> = []
      var table: [Role: Int] = [:]
      var optional: Set<UUID>? = []
    }
    let seed = UInt64.random(in: 0 ... .max)
    var random = SeededGenerator(seed: seed)
    let ids = (0..<20).map { _ in UUID() }
    func made() throws -> [UInt8] {
      var both = Both()
      for number in (0..<50).shuffled(using: &random) { both.set.insert(number) }
      for number in (0..<500).shuffled(using: &random) { both.set.insert(number) }
      for number in 50..<500 { both.set.remove(number) }
      both.optional = Set(ids.shuffled(using: &random))
      for number in (0..<9).shuffled(using: &random) {
        both.nested.insert(Set((0...number).shuffled(using: &random).map { "\($0)" }))
      }
      for role in [Role.owner, .guest, .clerk].shuffled(using: &random) { both.table[role] = 1 }
      return try JSONEncoding.encode(both)
    }
    let first = try made()
    for _ in 0..<20 { #expect(try made() == first, "seed \(seed)") }
    let again = try JSONDecoding(JSONTape(first)).decode(Both.self)
    #expect(again.set == Set(0..<50) && again.optional == Set(ids) && again.table.count == 3)
  }
}
