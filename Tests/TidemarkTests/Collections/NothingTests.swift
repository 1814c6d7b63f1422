import Testing
import TidemarkEngine
import TidemarkNDJSON
import TidemarkTestKit

import Tidemark
@testable import TidemarkCollections

struct Reading: Codable, Identifiable, Equatable, Sendable {
  var id: Int
  /// Nil, a number, or no number at all.
  var value: Double?
  var name: String?
  var level: Int?
  var raw: Double
  var marks: [Int?] = []
}

@Suite("Conditions on nothing and on what is no number")
struct NothingTests {
  static let indexes: [ObjectIndex<Reading>] = [
    ObjectIndex("value", \.value), ObjectIndex("name", .descending(\.name)),
    ObjectIndex("level", .ascending(\.level), .descending(\.value)),
    ObjectIndex("raw", .descending(\.raw)), ObjectIndex("marks", each: \.marks),
  ]

  static func readings(
    _ store: Store, _ indexes: [ObjectIndex<Reading>] = Self.indexes
  ) throws -> ObjectCollection<Reading, Int> {
    try store.collection(
      Reading.self, named: "readings", coding: Self.coding, CollectionSchema(indexes: indexes)
    ) { $0.id }
  }

  /// JSON has no NaN, so numbers go as their bits.
  static let coding = CollectionCoding<Reading>(
    encode: { reading in
      func bits(_ value: Double?) -> Int64? { value.map { Int64(bitPattern: $0.bitPattern) } }
      return try JSONEncoding.encode(
        Stored(
          id: reading.id, value: bits(reading.value), name: reading.name, level: reading.level,
          raw: bits(reading.raw) ?? 0, marks: reading.marks))
    },
    decode: { bytes in
      func number(_ bits: Int64) -> Double { Double(bitPattern: UInt64(bitPattern: bits)) }
      let stored = try JSONDecoding(JSONTape(bytes)).decode(Stored.self)
      return Reading(
        id: stored.id, value: stored.value.map(number), name: stored.name, level: stored.level,
        raw: number(stored.raw), marks: stored.marks)
    })

  private struct Stored: Codable {
    var id: Int
    var value: Int64?
    var name: String?
    var level: Int?
    var raw: Int64
    var marks: [Int?]
  }

  private func opened(
    _ readings: [Reading]
  ) async throws -> (Store, ObjectCollection<Reading, Int>) {
    let store = try await Store.open(at: .inMemory)
    let collection = try Self.readings(store)
    for reading in readings { try await collection.put(reading) }
    return (store, collection)
  }

  /// The objects that an index and a scan find alike.
  private func ids(
    _ condition: ObjectCondition<Reading>, of readings: ObjectCollection<Reading, Int>
  ) throws -> [Int] {
    let found = try readings.find(condition).map(\.id)
    let scan = try ObjectScan(readings, condition, [])
    #expect(try scan.page(limit: nil, after: nil).objects.map(\.id) == found)
    #expect(try readings.count(where: condition) == found.count)
    return found
  }

  private static let few = [
    Reading(id: 1, value: nil, name: nil, level: nil, raw: .nan),
    Reading(id: 2, value: .nan, name: "", level: 0, raw: -.infinity),
    Reading(id: 3, value: -1.5, name: "b", level: -4, raw: 0),
    Reading(id: 4, value: 7, name: "c", level: 9, raw: .infinity, marks: [nil, 3]),
  ]

  @Test("comparisons, the least and the largest pass nothing and no number by")
  func passedBy() async throws {
    let (store, readings) = try await opened(Self.few)
    func ids(_ condition: ObjectCondition<Reading>) throws -> [Int] {
      try self.ids(condition, of: readings)
    }
    #expect(try ids(\.value < 8) == [3, 4])
    #expect(try ids(\.value <= -1.5) == [3])
    #expect(try ids(\.value > -2) == [3, 4])
    #expect(try ids(\.raw >= 0) == [3, 4])
    #expect(try ids(\.raw > -.infinity) == [3, 4])
    #expect(try ids(\.name < "c") == [2, 3])
    #expect(try ids(\.level > -9) == [2, 3, 4])
    #expect(try readings.min(\.value) == -1.5)
    #expect(try readings.max(\.value) == 7)
    #expect(try readings.max(\.raw) == .infinity)
    #expect(try readings.min(\.name) == "")
    #expect(try readings.min(\.level, where: \.value == nil) == nil)
    try await store.close()
  }

  @Test("nothing is asked for by == and !=, and another value includes it, as in Swift")
  func equality() async throws {
    let (store, readings) = try await opened(Self.few)
    func ids(_ condition: ObjectCondition<Reading>) throws -> [Int] {
      try self.ids(condition, of: readings)
    }
    #expect(try ids(\.value == nil) == [1])
    #expect(try ids(\.value != nil) == [2, 3, 4])
    #expect(try ids(\.name != "b") == [1, 2, 4])
    #expect(try ids(\.level != 9) == [1, 2, 3])
    #expect(try ids(\.raw != 0) == [1, 2, 4])
    #expect(try ids(.oneOf(\.level, [nil, 9])) == [1, 4])
    #expect(try ids(.contains(\.marks, nil)) == [4])
    #expect(try ids(!.contains(\.marks, 3)) == [1, 2, 3])
    #expect(try ids(!(\.value == nil || \.level == 9)) == [2, 3])
    try await store.close()
  }

  @Test("a condition on no number, and an order on nothing, are refused")
  func refused() async throws {
    let (store, readings) = try await opened(Self.few)
    let nan = Double.nan
    let conditions: [ObjectCondition<Reading>] = [
      \.value == nan, \.value != nan, \.raw < nan, \.raw >= nan, .oneOf(\.raw, [1, nan]),
      \.value < nil, \.level >= nil, \.raw == 1 || !(\.name == "b" && \.value > nan),
      .index("raw", equals: nan),
    ]
    for (number, condition) in conditions.enumerated() {
      for scanning in [false, true] {
        #expect("\(number)") { try readings.find(condition, scanning: scanning) } throws: {
          ($0 as? TidemarkError)?.code == .invalidArgument
        }
      }
    }
    try await store.close()
  }

  @Test("a unique index takes any number of nothing, and of no number")
  func unique() async throws {
    let store = try await Store.open(at: .inMemory)
    let readings = try Self.readings(
      store,
      [
        ObjectIndex("name", unique: true, \.name),
        ObjectIndex("both", unique: true, .descending(\.level), .ascending(\.raw)),
      ])
    for id in 1...3 {
      try await readings.put(Reading(id: id, name: nil, level: nil, raw: 1))
      try await readings.put(Reading(id: 10 + id, name: nil, level: 4, raw: .nan))
    }
    try await readings.put(Reading(id: 20, name: "a", level: 4, raw: 1))
    await #expect(throws: TidemarkError.self) {
      try await readings.put(Reading(id: 21, name: nil, level: 4, raw: 1))
    }
    #expect(try readings.count(where: \.name == nil) == 6)
    try await store.close()
  }

  @Test("a cursor of another order is refused, by an index and by a scan")
  func cursors() async throws {
    let (store, readings) = try await opened(Self.few)
    let orders: [[ObjectOrder<Reading>]] = [
      [], [.ascending(\.value)], [.descending(\.value)], [.ascending(\.level)], [.ascending(\.raw)],
      [.descending(\.name)],
    ]
    for (one, order) in orders.enumerated() {
      let page = try readings.page(.everything, sort: order, limit: 2, scanning: true)
      let cursor = try #require(page.next)
      for (two, other) in orders.enumerated() {
        do {
          let rest = try readings.page(
            .everything, sort: other, limit: 9, after: cursor, scanning: true)
          #expect(one == two && rest.objects.count == 2, "\(one) \(two)")
        } catch {
          #expect(one != two && error.code == .invalidArgument, "\(one) \(two)")
        }
      }
    }
    try await store.close()
  }

  @Test("a list of all but some objects is kept up")
  func observed() async throws {
    let (store, readings) = try await opened(Self.few)
    let condition: ObjectCondition<Reading> = \.level != 9
    let watcher = ListWatcher(readings.core, condition, [], nil)
    #expect(try watcher.look()?.map(\.id) == [1, 2, 3])
    try await readings.update(4) { $0.level = nil }
    try await readings.update(1) { $0.level = 9 }
    #expect(try watcher.look()?.map(\.id) == [2, 3, 4])
    try await store.close()
  }

  @Test("an object that cannot be indexed is found by no condition that excludes others")
  func unindexed() async throws {
    let (store, readings) = try await opened(Self.few)
    try await store.put("readings/8", "no reading")
    #expect(try readings.unindexed() == [8])
    var told = 0
    let tell: (TidemarkError) -> Void = { error in told += error.object?.id == "8" ? 1 : 0 }
    #expect(try readings.find(\.level != 9, unreadable: tell).map(\.id) == [1, 2, 3])
    #expect(try readings.find(!.contains(\.marks, 3), unreadable: tell).map(\.id) == [1, 2, 3])
    #expect(try readings.count(where: !.contains(\.marks, 3), unreadable: tell) == 3)
    #expect(told == 3)
    try await store.close()
  }
}
