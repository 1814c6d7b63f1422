import Testing
import TidemarkEngine
import TidemarkTestKit

import Tidemark
@testable import TidemarkCollections

struct Song: Codable, Identifiable, Equatable, Sendable {
  struct Place: Codable, Equatable, Sendable {
    var disc: Int
    var track: Int
  }

  var id: String
  var title: String
  var author: String
  var place: Place
  var tags: [String] = []
  var moods: [String] = []

  var initial: String { String(title.prefix(1)) }
  var ending: String { String(title.suffix(1)) }
}

@Suite("The identity of indexes")
struct IndexIdentityTests {
  private func songs(
    _ store: Store, _ index: ObjectIndex<Song>
  ) throws -> ObjectCollection<Song, String> {
    try store.collection(Song.self, named: "songs", CollectionSchema(indexes: [index]))
  }

  /// Declares an index in one opening and another of the same name and version in the next.
  /// - Returns: what is asked of the second.
  private func changed<Answer>(
    from old: ObjectIndex<Song>, to new: ObjectIndex<Song>,
    _ ask: (ObjectCollection<Song, String>) throws -> Answer
  ) async throws -> Answer {
    let configuration = Store.Configuration(on: MemoryFileSystem())
    var store = try await Store.open(at: "/s", configuration: configuration)
    let before = try songs(store, old)
    for number in 0..<30 {
      try await before.put(
        Song(
          id: "\(number)", title: "t\(number)", author: "a\(number % 5)",
          place: .init(disc: number % 2, track: number), tags: ["tag\(number % 3)"],
          moods: ["mood\(number % 4)"]))
    }
    try await store.close()
    store = try await Store.open(at: "/s", configuration: configuration)
    let after = try songs(store, new)
    try await after.indexesBuilt()
    #expect(try after.core.firstDisagreement() == nil)
    let answer = try ask(after)
    try await store.close()
    return answer
  }

  @Test("an index of another property is built anew, under the same name and version")
  func property() async throws {
    let count = try await changed(
      from: ObjectIndex("by", \.title), to: ObjectIndex("by", \.author)
    ) { try $0.count(where: \.author == "a3") }
    #expect(count == 6)
  }

  @Test("an index of another property within a property is built anew")
  func nested() async throws {
    let ids = try await changed(
      from: ObjectIndex("by", \.place.disc), to: ObjectIndex("by", \.place.track)
    ) { try $0.find(sort: [.descending(\.place.track)], limit: 2).map(\.id) }
    #expect(ids == ["29", "28"])
  }

  @Test("an index of the values of another list is built anew")
  func list() async throws {
    let count = try await changed(
      from: ObjectIndex("by", each: \.tags), to: ObjectIndex("by", each: \.moods)
    ) { try $0.count(where: .contains(\.moods, "mood1")) }
    #expect(count == 8)
  }

  @Test("an index whose parts change places is built anew")
  func parts() async throws {
    let ids = try await changed(
      from: ObjectIndex("by", .ascending(\.author), .folded(\.title)),
      to: ObjectIndex("by", .ascending(\.title), .folded(\.author))
    ) { try $0.find(\.title == "t7", sort: [.folded(\.author)]).map(\.id) }
    #expect(ids == ["7"])
  }

  @Test("an index of another computed property is built anew, though its name cannot be seen")
  func computed() async throws {
    let count = try await changed(
      from: ObjectIndex("by", \.initial), to: ObjectIndex("by", \.ending)
    ) { try $0.count(where: \.ending == "4") }
    #expect(count == 3)
  }

  @Test(
    "an index whose closure changes is built anew, where one of the objects it is tried on shows")
  func closure() async throws {
    let count = try await changed(
      from: ObjectIndex("by", computed: { $0.tags }), to: ObjectIndex("by", computed: { $0.moods })
    ) { try $0.count(where: .index("by", equals: "mood2")) }
    #expect(count == 7)
  }

  @Test("a full-text index is rebuilt when the closure that gives its texts returns others")
  func texts() async throws {
    let count = try await changed(
      from: ObjectIndex(text: "by", \.title), to: ObjectIndex(text: "by", \.author)
    ) { try $0.search("by", "a4", limit: 100).count }
    #expect(count == 6)
  }

  @Test("an index that had no values at all is built anew when its closure gives some")
  func nothingBefore() async throws {
    let count = try await changed(
      from: ObjectIndex("by", computed: { _ in [Int]() }),
      to: ObjectIndex("by", computed: { [$0.place.track] })
    ) { try $0.count(where: .index("by", in: 10...19)) }
    #expect(count == 10)
  }

  @Test("an index that stays the same is not built again")
  func same() async throws {
    let indexes = [
      ObjectIndex("by", \Song.place.track), ObjectIndex("by", .folded(\Song.title)),
      ObjectIndex("by", each: \Song.tags), ObjectIndex("by", \Song.initial),
      ObjectIndex("by", computed: { (song: Song) in [song.place.disc] }),
      ObjectIndex(text: "by", \Song.title),
    ]
    for index in indexes {
      let number = try await changed(from: index, to: index) {
        $0.core.indexes?.now.catalog.rows.first?.number
      }
      #expect(number == 1)
    }
  }
}
