import Foundation
import Testing
import Tidemark
import TidemarkFoundation

@Suite("Foundation's types")
struct ConversionTests {
  @Test("data is a value and a key, and comes back as it was")
  func data() async throws {
    let store = try await Store.open(at: .inMemory)
    let value = try JSONEncoder().encode(["title": "Buy milk"])
    try await store.put(Data([0, 0xff]), value)
    #expect(try store.data(forKey: Key([0, 0xff])) == value)
    #expect(try store.entry(forKey: Data([0, 0xff]))?.data == value)
    #expect(try store.data(forKey: "nothing") == nil)
    // A part of other data begins with an index that is not 0.
    let part = Data([1, 2, 3, 4])[2...]
    try await store.put("part", part)
    #expect(try store.value(forKey: "part") == [3, 4])
    #expect(try store.all(prefix: Data([0])).count == 1)
  }

  @Test("a UUID is sixteen bytes, from which it comes back")
  func uuid() async throws {
    let store = try await Store.open(at: .inMemory)
    let id = try #require(UUID(uuidString: "00112233-4455-6677-8899-AABBCCDDEEFF"))
    #expect(id.bytes == (0..<16).map { UInt8($0 * 0x11) })
    try await store.put(id, "note")
    let key = try #require(try store.all().first?.key)
    #expect(UUID(bytes: key.bytes) == id)
    #expect(UUID(bytes: [1, 2, 3]) == nil)
  }

  @Test("a URL is the text of its address")
  func url() async throws {
    let store = try await Store.open(at: .inMemory)
    let url = try #require(URL(string: "https://example.org/a%20b?c=d"))
    try await store.put(url, "page")
    #expect(try store.text(forKey: "https://example.org/a%20b?c=d") == "page")
  }

  @Test(
    "a date comes back from its timestamp, before 1970 as well",
    arguments: [0, 0.5, -0.25, 1_767_225_600.125, -62_135_596_800, 253_402_300_799.5])
  func dates(seconds: Double) {
    let date = Date(timeIntervalSince1970: seconds)
    #expect(Timestamp(date).date == date)
    #expect(Date(Timestamp(date)) == date)
    #expect(Timestamp(date).seconds == Int64(seconds.rounded(.down)))
  }

  @Test("dates that no timestamp can say become the nearest one")
  func farDates() {
    func timestamp(_ seconds: Double) -> Timestamp {
      Timestamp(Date(timeIntervalSince1970: seconds))
    }
    #expect(timestamp(.infinity) == Timestamp(seconds: .max))
    #expect(timestamp(-.infinity) == Timestamp(seconds: .min))
    #expect(timestamp(1e30) == Timestamp(seconds: .max))
    #expect(timestamp(.nan) == Timestamp(seconds: 0))
  }

  @Test("a store is opened at a file URL, and copied to one")
  func open() async throws {
    let folder = FileManager.default.temporaryDirectory
      .appending(path: "tidemark test \(UUID().uuidString)")
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    defer { try? FileManager.default.removeItem(at: folder) }
    let store = try await Store.open(at: folder.appending(path: "a.tidemark"))
    try await store.put("a", "1")
    try await store.backup(to: folder.appending(path: "b.tidemark"))
    try await store.close()
    let copy = try Store.openBlocking(at: folder.appending(path: "b.tidemark"))
    #expect(try copy.text(forKey: "a") == "1")
    try await copy.close()
    let remote = try #require(URL(string: "https://example.org/a"))
    let error = await #expect(throws: TidemarkError.self) { _ = try await Store.open(at: remote) }
    #expect(error?.code == .invalidArgument)
  }

  @Test("objects are found and sorted by dates and UUIDs")
  func indexed() async throws {
    struct Visit: Codable, Identifiable, Sendable {
      var id: Int
      var time: Date?
      var guest: UUID
    }
    let store = try await Store.open(at: .inMemory)
    let visits = try store.collection(
      Visit.self, named: "visits",
      CollectionSchema(indexes: [ObjectIndex("time", \.time), ObjectIndex("guest", \.guest)]))
    let guests = [UUID(), UUID(), UUID()]
    let times: [TimeInterval?] = [1e9, -1.5, 1e9 + 0.25, nil]
    for (id, time) in times.enumerated() {
      try await visits.put(
        Visit(id: id, time: time.map(Date.init(timeIntervalSince1970:)), guest: guests[id % 3]))
    }
    #expect(try visits.find(sort: [.ascending(\.time)]).map(\.id) == [3, 1, 0, 2])
    #expect(try visits.find(\.time > Date(timeIntervalSince1970: 1e9)).map(\.id) == [2])
    #expect(try visits.find(\.guest == guests[0], sort: [.descending(\.guest)]).count == 2)
    try await store.close()
  }
}
