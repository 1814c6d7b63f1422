import Testing
import TidemarkEngine
import TidemarkTestKit

import Tidemark
@testable import TidemarkCollections

/// Queries over values that may be missing or no numbers, by an index, by a scan, kept up, and by
/// plain Swift.
@Suite("Random queries of nothing and no number")
struct RandomNothingTests {
  private typealias Condition = ObjectCondition<Reading>
  private typealias Pair = (condition: Condition, holds: (Reading) -> Bool)

  private static let numbers: [Double] = [-.infinity, -2, -0.0, 0, 0.5, 3, .infinity]
  private static let names = ["", "a", "ab", "b", "\0"]

  private func reading(_ id: Int, _ random: inout SeededGenerator) -> Reading {
    func maybe<Value>(_ values: [Value]) -> Value? {
      Int.random(in: 0..<4, using: &random) == 0 ? nil : values.randomElement(using: &random)
    }
    let numbers = Self.numbers + [.nan, -.nan]
    return Reading(
      id: id, value: maybe(numbers), name: maybe(Self.names), level: maybe([-3, 0, 1, 2]),
      raw: numbers.randomElement(using: &random) ?? 0,
      marks: (0..<Int.random(in: 0..<3, using: &random)).map { _ in maybe([1, 2, 3]) })
  }

  /// A comparison with one of the operators.
  private func compared<Value: IndexValue & Comparable>(
    _ path: any KeyPath<Reading, Value?> & Sendable, _ value: Value, _ kind: Int
  ) -> Pair {
    func pass(_ body: @escaping (Value) -> Bool) -> (Reading) -> Bool {
      { $0[keyPath: path].map(body) ?? false }
    }
    return switch kind {
    case 0: (path == value, { $0[keyPath: path] == value })
    case 1: (path != value, { $0[keyPath: path] != value })
    case 2: (path < value, pass { $0 < value })
    case 3: (path <= value, pass { $0 <= value })
    case 4: (path > value, pass { $0 > value })
    case 5: (path >= value, pass { $0 >= value })
    case 6: (path == nil, { $0[keyPath: path] == nil })
    case 7: (path != nil, { $0[keyPath: path] != nil })
    default: (.oneOf(path, [nil, value]), { [nil, value].contains($0[keyPath: path]) })
    }
  }

  private func leaf(_ random: inout SeededGenerator) -> Pair {
    let kind = Int.random(in: 0..<9, using: &random)
    let number = Self.numbers.randomElement(using: &random) ?? 0
    switch Int.random(in: 0..<7, using: &random) {
    case 0, 1: return compared(\.value, number, kind)
    case 2: return compared(\.name, Self.names.randomElement(using: &random) ?? "", kind)
    case 3: return compared(\.level, Int.random(in: -4..<4, using: &random), kind)
    case 4:
      let mark = [nil, 1, 2, 3].randomElement(using: &random) ?? nil
      return (.contains(\.marks, mark), { $0.marks.contains(mark) })
    default:
      return switch kind {
      case 0, 6: (\.raw == number, { $0.raw == number })
      case 1, 7: (\.raw != number, { $0.raw != number })
      case 2: (\.raw < number, { $0.raw < number })
      case 3: (\.raw <= number, { $0.raw <= number })
      case 4: (\.raw > number, { $0.raw > number })
      case 5: (\.raw >= number, { $0.raw >= number })
      default: (.oneOf(\.raw, [number, 3]), { $0.raw == number || $0.raw == 3 })
      }
    }
  }

  private func pair(_ random: inout SeededGenerator, depth: Int = 0) -> Pair {
    let kind = Int.random(in: 0..<(depth > 2 ? 1 : 6), using: &random)
    guard kind > 1 else { return leaf(&random) }
    let a = pair(&random, depth: depth + 1)
    if kind > 3 { return (!a.condition, { !a.holds($0) }) }
    let b = pair(&random, depth: depth + 1)
    return kind == 2
      ? (a.condition && b.condition, { a.holds($0) && b.holds($0) })
      : (a.condition || b.condition, { a.holds($0) || b.holds($0) })
  }

  /// Orders, and the places of objects in them: nothing first, what is no number last.
  private static let orders:
    [(order: [ObjectOrder<Reading>], places: @Sendable (Reading) -> [Double])] = [
      ([], { _ in [] }),
      ([.ascending(\.value)], { [place($0.value)] }),
      ([.descending(\.value)], { [-place($0.value)] }),
      ([.ascending(\.raw)], { [place($0.raw)] }),
      ([.descending(\.raw)], { [-place($0.raw)] }),
      ([.ascending(\.level), .descending(\.value)], { [place($0.level), -place($0.value)] }),
      ([.descending(\.level), .ascending(\.value)], { [-place($0.level), place($0.value)] }),
      ([.ascending(\.level), .ascending(\.raw)], { [place($0.level), place($0.raw)] }),
    ]

  private static func place(_ level: Int?) -> Double { place(level.map(Double.init)) }

  private static func place(_ value: Double?) -> Double {
    guard let value else { return -9 }
    return value.isNaN ? 9 : min(max(value, -5), 5)
  }

  @Test("indexes, scans, pages, lists that are kept up and plain Swift agree")
  func random() async throws {
    let seed = UInt64.random(in: 0 ... .max)
    print("seed \(seed)")
    var random = SeededGenerator(seed: seed)
    let store = try await Store.open(at: .inMemory)
    let readings = try NothingTests.readings(store)
    var all = (0..<60).map { reading($0, &random) }
    for reading in all { try await readings.put(reading) }
    var watchers: [(ListWatcher<Reading, Int>, Pair, list: [Int], Comment)] = []
    for number in 0..<400 {
      let pair = pair(&random)
      let (order, places) = Self.orders.randomElement(using: &random) ?? Self.orders[0]
      let words: Comment = "seed \(seed) query \(number)"
      let wanted = Set(all.filter(pair.holds).map(\.id))
      let found = try readings.find(pair.condition, sort: order)
      #expect(Set(found.map(\.id)) == wanted && found.count == wanted.count, words)
      #expect(try readings.count(where: pair.condition) == wanted.count, words)
      let scanned = try ObjectScan(readings, pair.condition, order).page(limit: nil, after: nil)
      #expect(Set(scanned.objects.map(\.id)) == wanted, words)
      for list in [found, scanned.objects] {
        for (a, b) in zip(list, list.dropFirst()) {
          #expect(!places(b).lexicographicallyPrecedes(places(a)), words)
        }
      }
      try checkPages(readings, pair, order, found, &random, words)
      let held = all.filter(pair.holds)
      #expect(
        try (readings.min(\.value, where: pair.condition) ?? nil)
          == held.compactMap(\.value).filter { !$0.isNaN }.min(), words)
      #expect(
        try readings.max(\.raw, where: pair.condition)
          == held.map(\.raw).filter { !$0.isNaN }.max(), words)
      if number % 20 == 0 {
        let watcher = ListWatcher(readings.core, pair.condition, order, nil)
        watchers.append((watcher, pair, try watcher.look()?.ids ?? [], words))
        let changed = reading(Int.random(in: 0..<60, using: &random), &random)
        all[changed.id] = changed
        try await readings.put(changed)
      }
    }
    let changed = (0..<60).map { reading($0, &random) }
    for reading in changed { try await readings.put(reading) }
    for (watcher, pair, before, words) in watchers {
      let list = try watcher.look()?.ids ?? before
      #expect(Set(list) == Set(changed.filter(pair.holds).map(\.id)), words)
    }
    try await store.close()
  }

  /// Pages of the index and of the scan in any mix have each object once, in an order.
  private func checkPages(
    _ readings: ObjectCollection<Reading, Int>, _ pair: Pair, _ order: [ObjectOrder<Reading>],
    _ wanted: [Reading], _ random: inout SeededGenerator, _ words: Comment
  ) throws {
    var paged: [Int] = []
    var cursor: ObjectCursor?
    repeat {
      let page =
        Bool.random(using: &random)
        ? try readings.page(pair.condition, sort: order, limit: 9, after: cursor)
        : try ObjectScan(readings, pair.condition, order).page(limit: 9, after: cursor)
      paged += page.objects.map(\.id)
      cursor = page.next
    } while cursor != nil
    #expect(Set(paged) == Set(wanted.map(\.id)) && paged.count == wanted.count, words)
  }
}
