import Testing
import Tidemark
import TidemarkEngine
import TidemarkTestKit

@Suite("Views of the newest items over fixed intervals")
struct IntervalTests {
  let machine = Machine()

  /// A list on a server, whose items are their ids.
  actor Server {
    private var ids: [Int64]
    private(set) var requests: [Range<Int64>] = []
    var isDown = false

    init(_ ids: [Int64]) { self.ids = ids }

    func add(_ id: Int64) { ids.append(id) }

    func stop() { isDown = true }

    func items(_ interval: Range<Int64>) throws -> [Int64] {
      requests.append(interval)
      if isDown { throw ScriptedCollection.Failure() }
      return ids.filter { interval.contains($0) }
    }
  }

  private static let coding = CacheCoding<[Int64]>(
    encode: { ids in ids.flatMap { id in (0..<8).map { UInt8(truncatingIfNeeded: id >> ($0 * 8)) } }
    },
    decode: { bytes in
      stride(from: 0, to: bytes.count, by: 8).map { start in
        (0..<8).reduce(Int64(0)) { $0 | Int64(bytes[start + $1]) << ($1 * 8) }
      }
    })

  private func reader(_ store: Store, _ server: Server) throws -> IntervalReader<Int64> {
    let cache = try store.cache(prefix: "l/", policy: .manifest, coding: Self.coding)
    return IntervalReader(cache, paging: IntervalPaging(size: 20), id: { $0 }) { interval in
      try await server.items(interval)
    }
  }

  @Test("intervals are aligned, do not overlap, and cover a view without one too many")
  func intervals() {
    var chance = SeededGenerator(seed: 11)
    for _ in 0..<2_000 {
      let paging = IntervalPaging(size: Int64(chance.int(in: 1...50)))
      let newest = Int64(chance.int(in: 0...2_000)) - 1_000
      let lowest = newest - Int64(chance.int(in: 0...300))
      let count = chance.int(in: 1...100)
      let found = paging.intervals(newest: count, through: newest, from: lowest)
      let last = max(lowest, newest - Int64(count) + 1)
      #expect(found.first?.contains(newest) == true && found.last?.contains(last) == true)
      for (newer, older) in zip(found, found.dropFirst()) {
        #expect(newer.lowerBound == older.upperBound)
      }
      for interval in found {
        #expect(interval.lowerBound % paging.size == 0 && interval.count == Int(paging.size))
        #expect(paging.isClosed(interval, newest: newest) == (interval.upperBound <= newest + 1))
      }
    }
    let edges = IntervalPaging(size: 7)
    let extremes: [Int64] = [.min, .min + 3, .max - 3, .max - 1, -1, 0]
    for id in extremes {
      #expect(edges.interval(containing: id).contains(id))
    }
    #expect(IntervalPaging(size: 0).size == 1)
    #expect(edges.intervals(newest: 0, through: 5).isEmpty)
  }

  @Test("paging on asks for no interval twice, and closed ones are never asked for again")
  func requests() async throws {
    let store = try machine.open()
    let server = Server(Array(0...57))
    let reader = try reader(store, server)
    var page = try await reader.newest(20, through: 57)
    #expect(page == Array((38...57).reversed()))
    #expect(await server.requests == [40..<60, 20..<40])
    page = try await reader.newest(20, through: 37, newest: 57)
    #expect(page == Array((18...37).reversed()))
    #expect(await server.requests == [40..<60, 20..<40, 0..<20])
    // Two items more: the open interval has changed, the others cannot.
    await server.add(58)
    await server.add(59)
    page = try await reader.newest(20, through: 59)
    #expect(page == Array((40...59).reversed()))
    page = try await reader.newest(60, through: 59)
    #expect(page.count == 60)
    #expect(await server.requests == [40..<60, 20..<40, 0..<20, 40..<60])
    machine.clock.advance(by: .seconds(86_400 * 365))
    _ = try await reader.newest(60, through: 59)
    #expect(await server.requests.count == 4)
    try await store.close()
  }

  @Test("an open interval that is here serves while the source fails, and gaps are paged over")
  func gaps() async throws {
    let store = try machine.open()
    let server = Server([3, 44, 97, 103])
    let reader = try reader(store, server)
    #expect(try await reader.newest(3, through: 103) == [103, 97, 44])
    #expect(await server.requests == [100..<120, 80..<100, 60..<80, 40..<60])
    await server.stop()
    #expect(try await reader.newest(3, through: 103) == [103, 97, 44])
    await #expect(throws: ScriptedCollection.Failure.self) {
      try await reader.newest(4, through: 103)
    }
    try await store.close()
  }
}
