import Testing
import Tidemark
@testable import TidemarkCaches
import TidemarkEngine
import TidemarkTestKit

@Suite("Collections over the keys of a cache", .timeLimit(.minutes(20)))
struct CollectionOverCacheTests {
  struct Station: Codable, Sendable, Hashable, Identifiable {
    var id: String
    var name: String
    var town: String
  }

  let machine = Machine()

  /// Cache and collection code their values alike.
  private static let coding = CacheCoding<Station>(
    encode: CollectionCoding.json.encode, decode: CollectionCoding.json.decode)

  private func cache(_ store: Store, _ policy: CachePolicy) throws -> Cache<Station> {
    try store.cache(prefix: "stations/", policy: policy, coding: Self.coding)
  }

  private let schema = CollectionSchema<Station>(indexes: [
    ObjectIndex("town", \.town), ObjectIndex(text: "words", \.name),
  ])

  /// A server's collection of stations.
  private func source(_ stations: [Station], _ version: UInt8) -> StationSource {
    StationSource(stations: stations, version: version)
  }

  struct StationSource: MirrorSource {
    var stations: [Station]
    var version: UInt8

    func collectionHash() async throws -> [UInt8] { [version] }
    func list(_ add: @Sendable (MirrorItem) throws -> Void) async throws {
      for station in stations {
        let text = "\(station.name)/\(station.town)"
        try add(MirrorItem(Key(station.id), hash: Array(SHA256.hash(Array(text.utf8).rawSpan))))
      }
    }
    func fetch(_ item: MirrorItem) async throws -> MirrorValue<Station> {
      guard let station = stations.first(where: { Key($0.id) == item.key }) else {
        throw CancellationError()
      }
      return MirrorValue(station)
    }
  }

  private static func stations(_ count: Int) -> [Station] {
    (0..<count).map {
      Station(id: "\(1_000 + $0)", name: "Quay number\($0)", town: $0 % 2 == 0 ? "Oban" : "Mallaig")
    }
  }

  @Test("indexes, search and live lists follow a collection that is synced from a server")
  func live() async throws {
    let store = try machine.open()
    let cache = try cache(store, .manifest)
    let stations = try store.collection(Station.self, named: "stations", schema)
    try await stations.indexesBuilt()
    try await cache.sync(with: source(Self.stations(20), 1))
    #expect(try stations.count() == 20)
    #expect(try stations.find(\.town == "Oban").count == 10)
    #expect(try stations.search("words", "number7").map(\.object.id) == ["1007"])

    var lists = stations.observe(\.town == "Oban").makeAsyncIterator()
    #expect(try await lists.next()?.count == 10)
    // The next generation moves a station, has a new one, and lacks two.
    var next = Self.stations(20)
    next[1].town = "Oban"
    next.remove(at: 4)
    next.removeLast()
    next.append(Station(id: "new", name: "Pier", town: "Oban"))
    try await cache.sync(with: source(next, 2))
    let list = try #require(try await lists.next())
    #expect(list.count == 11 && list.contains { $0.id == "1001" })
    #expect(try stations.search("words", "number4").isEmpty)
    #expect(try stations.search("words", "pier").map(\.object.id) == ["new"])
    #expect(try stations.get("1004") == nil && stations.get("1001")?.town == "Oban")

    // Values that are given up leave the lists, too.
    try await cache.removeAll()
    #expect(try await lists.next()?.isEmpty == true)
    #expect(try stations.find(\.town == "Mallaig").isEmpty)
    try await store.close()
  }

  @Test("an object that is read by its id is used, as if the cache had read it")
  func uses() async throws {
    let store = try machine.open()
    let cache = try cache(store, CachePolicy(capacity: 5))
    let stations = try store.collection(Station.self, named: "stations", schema)
    try await stations.indexesBuilt()
    for station in Self.stations(5) {
      machine.clock.advance(by: .seconds(1))
      try await cache.put(station.id, station)
    }
    for id in ["1000", "1002", "1000"] {
      machine.clock.advance(by: .seconds(1))
      #expect(try stations.get(id)?.id == id)
    }
    // Lists and searches are scans, which are no use of what they come by.
    _ = try stations.all()
    _ = try stations.find(\.town == "Mallaig")
    #expect(
      try cache.leastRecentlyUsed().map(\.key.text) == ["1001", "1003", "1004", "1002", "1000"])
    #expect(try cache.leastRecentlyUsed().last?.uses == 2)
    try await cache.put("new", Station(id: "new", name: "Pier", town: "Oban"))
    #expect(try stations.get("1001") == nil && stations.get("1000") != nil)
    try await store.close()
  }
}
