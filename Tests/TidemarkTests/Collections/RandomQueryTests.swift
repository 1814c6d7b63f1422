import Testing
import TidemarkEngine
import TidemarkTestKit

import Tidemark
@testable import TidemarkCollections

@Suite("Random queries")
struct RandomQueryTests {
  /// A condition, and the same as a closure.
  private typealias Pair = (condition: ObjectCondition<Package>, holds: (Package) -> Bool)

  private func leaf(_ random: inout SeededGenerator) -> Pair {
    let size = Int.random(in: 0..<20, using: &random)
    let section = ["a", "ab", "c"][Int.random(in: 0..<3, using: &random)]
    let title = ["É", "e", "F", "fa"][Int.random(in: 0..<4, using: &random)]
    let tag = "\(Int.random(in: 0..<4, using: &random))"
    let folded = FoldedText(title)
    return switch Int.random(in: 0..<14, using: &random) {
    case 0: (\.size < size, { $0.size < size })
    case 1: (\.size <= size, { $0.size <= size })
    case 2: (\.size > size, { $0.size > size })
    case 3: (\.size >= size, { $0.size >= size })
    case 4: (\.size == size, { $0.size == size })
    case 5, 6: (\.section == section, { $0.section == section })
    case 7: (\.section != section, { $0.section != section })
    case 8: (.oneOf(\.size, [size, size + 3]), { $0.size == size || $0.size == size + 3 })
    case 9: (.contains(\.tags, tag), { $0.tags.contains(tag) })
    case 10: (\.isPinned == true, { $0.isPinned })
    case 13: (.hasPrefix(\.section, "a"), { $0.section.hasPrefix("a") })
    case 11: (.folded(\.title, equals: title), { FoldedText($0.title) == folded })
    default: (.folded(\.title, hasPrefix: title), { FoldedText($0.title).hasPrefix(folded) })
    }
  }

  private func pair(_ random: inout SeededGenerator, depth: Int = 0) -> Pair {
    let kind = Int.random(in: 0..<(depth > 2 ? 1 : 5), using: &random)
    guard kind > 1 else { return leaf(&random) }
    let a = pair(&random, depth: depth + 1)
    if kind == 4 { return (!a.condition, { !a.holds($0) }) }
    let b = pair(&random, depth: depth + 1)
    return kind == 2
      ? (a.condition && b.condition, { a.holds($0) && b.holds($0) })
      : (a.condition || b.condition, { a.holds($0) || b.holds($0) })
  }

  private static let orders: [[ObjectOrder<Package>]] = [
    [], [.ascending(\.size)], [.descending(\.size)],
    [.ascending(\.section), .descending(\.size)], [.descending(\.section), .ascending(\.size)],
    [.ascending(\.section), .ascending(\.size)], [.descending(\.isPinned), .folded(\.title)],
    [.folded(\.title)], [.ascending(\.isPinned)],
  ]

  @Test("every query has the objects that meet its condition, in pages and when it scans")
  func random() async throws {
    let seed = UInt64.random(in: 0 ... .max)
    print("seed \(seed)")
    var random = SeededGenerator(seed: seed)
    let store = try await Store.open(at: .inMemory)
    let packages = try IndexTests.packages(store)
    try await fill(store, packages, &random)
    let all = try packages.all()
    var refused = 0
    for number in 0..<600 {
      let (condition, holds) = pair(&random)
      let order = Self.orders[Int.random(in: 0..<Self.orders.count, using: &random)]
      let wanted = Set(all.filter(holds).map(\.id))
      let found: [Package]
      do { found = try packages.find(condition, sort: order) } catch {
        #expect(error.code == .indexMissing)
        refused += 1
        continue
      }
      let words = try packages.explain(condition, sort: order)
      #expect(Set(found.map(\.id)) == wanted, "query \(number): \(words)")
      // An index is walked also where few objects could be sorted.
      let walked = try ObjectQuery(packages.core, condition, order, counted: 1)
        .rows.found(limit: nil, after: nil)
      #expect(
        walked.map(\.id) == found.map { Array($0.id.utf8) }, "query \(number), walked: \(words)")
      #expect(found.count == wanted.count, "query \(number): \(words)")
      let scanned = try ObjectScan(packages, condition, order).page(limit: nil, after: nil)
      #expect(Set(scanned.objects.map(\.id)) == wanted, "query \(number)")
      // Both have the same order, but for objects that are equal in it.
      #expect(
        found.map { terms($0, order) } == scanned.objects.map { terms($0, order) },
        "query \(number): \(words)")
      do { #expect(try packages.count(where: condition) == wanted.count, "query \(number)") } catch
      {
        // Without an order there may be no index that leads to them.
        #expect(error.code == .indexMissing)
      }
      var paged: [Package] = []
      var page = try packages.page(condition, sort: order, limit: 11)
      while true {
        paged += page.objects
        guard let cursor = page.next else { break }
        page = try packages.page(condition, sort: order, limit: 11, after: cursor)
      }
      #expect(paged == found, "query \(number): \(words)")
    }
    #expect(refused < 400)
    try await store.close()
  }

  private func fill(
    _ store: Store, _ packages: ObjectCollection<Package, String>,
    _ random: inout SeededGenerator
  ) async throws {
    var batch = WriteBatch()
    for number in 0..<120 {
      try batch.put(
        Package(
          id: "\(number)", section: ["a", "ab", "c"][Int.random(in: 0..<3, using: &random)],
          size: Int.random(in: 0..<20, using: &random),
          title: ["É", "e", "E", "F", "fab"][Int.random(in: 0..<5, using: &random)],
          tags: (0..<Int.random(in: 0..<3, using: &random)).map { _ in
            "\(Int.random(in: 0..<4, using: &random))"
          }, isPinned: Bool.random(using: &random)), in: packages)
    }
    try await store.write(batch)
  }

  private func terms(_ package: Package, _ order: [ObjectOrder<Package>]) -> [[UInt8]] {
    order.map { order in
      guard case .path(let path, let form, _) = order.planned.target else { return [] }
      let value = package[keyPath: path as AnyKeyPath]
      if form == .folded, let text = value as? String { return FoldedText(text).bytes }
      return (value as? any IndexValue)?.indexTerm.bytes ?? []
    }
  }
}
