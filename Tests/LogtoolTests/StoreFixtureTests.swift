import Foundation
import Testing
import Tidemark
import TidemarkSync

/// Stores that earlier releases have written open in every later one; see ``StoreFixture``.
@Suite("Stores of earlier releases", .serialized)
struct StoreFixtureTests {
  private static let root = URL(filePath: #filePath).deletingLastPathComponent()
    .deletingLastPathComponent().deletingLastPathComponent()
  private static let stores = root.appending(path: "Tests/Fixtures/stores")
  private static let all = StoreFixture.versions.flatMap { version in
    StoreFixture.allCases.map { (version, $0) }
  }

  private let tool: ToolProcess

  init() throws { tool = try ToolProcess() }

  /// Runs a program with the key that encrypted stores need.
  private func run(
    _ fixture: StoreFixture, program: URL = ToolProcess.tool, _ arguments: String...
  ) throws -> ToolProcess.Ended {
    var key: [String: String] = [:]
    if fixture == .encrypted {
      let digits = StoreFixture.key.map { String(format: "%02x", $0) }.joined()
      try tool.write(digits, to: "key")
      key = ["TIDEMARK_KEY_FILE": tool.path("key")]
    }
    return try tool.run(arguments, program: program, environment: key)
  }

  private func shell(_ line: String) throws -> ToolProcess.Ended {
    let ended = try tool.run(["-c", line], program: URL(filePath: "/bin/sh"))
    try #require(ended.status == 0, "\(ended.talk)")
    return ended
  }

  /// Takes a store out of its archive.
  private func unpack(_ version: String, _ fixture: StoreFixture) throws -> String {
    _ = try shell("zstd -d -q -c '\(file(version, fixture)).tar.zst' | tar -xf -")
    return tool.path(fixture.rawValue)
  }

  private func file(_ version: String, _ fixture: StoreFixture) -> String {
    Self.stores.appending(path: "\(version)/\(fixture.rawValue)").path
  }

  /// Repairs a damaged store into a new one beside it, and returns the new one's path.
  private func repaired(_ store: String) throws -> String {
    #expect(try run(.damaged, "verify", store).status == 2)
    let ended = try run(.damaged, "repair", store, "--into", store + ".repaired")
    #expect(ended.status == 0 || ended.status == 2, "\(ended.talk)")
    return store + ".repaired"
  }

  @Test("a store of an earlier release verifies, and exports what it exported then", arguments: all)
  func reads(version: String, fixture: StoreFixture) throws {
    guard fixture != .encrypted || Encryption.isAvailable else { return }
    var store = try unpack(version, fixture)
    if fixture == .damaged { store = try repaired(store) }
    let verified = try run(fixture, "verify", store)
    #expect(verified.status == 0, "\(verified.lines) \(verified.talk)")
    let exported = try run(fixture, "export", store, "--history", "--quiet", "--library-keys")
    #expect(exported.status == 0, "\(exported.talk)")
    let expected = try shell("zstd -d -q -c '\(file(version, fixture)).ndjson.zst'")
    #expect(exported.output == expected.output)
    guard fixture != .encrypted else { return }
    let reader = Self.root.appending(path: "Tools/read-store")
    let checked = try run(fixture, program: reader, "--check", store)
    #expect(checked.status == 0 && checked.lines == [])
    #expect(try run(fixture, program: reader, store, "--history").output == exported.output)
  }

  @Test(
    "a store of an earlier release keeps all values when it is written to and compacted",
    arguments: all)
  func writes(version: String, fixture: StoreFixture) async throws {
    guard fixture != .encrypted || Encryption.isAvailable else { return }
    var path = try unpack(version, fixture)
    if fixture == .damaged { path = try repaired(path) }
    let store = try await Store.open(at: path, configuration: fixture.configuration)
    try await check(fixture, store)
    var before = try values(store)
    try await store.put("new", "value")
    _ = try await store.compact()
    try await store.close()
    let again = try await Store.open(at: path, configuration: fixture.configuration)
    before["new"] = Array("value".utf8)
    #expect(before.count > 1)
    #expect(try values(again) == before)
    try await again.close()
    #expect(try run(fixture, "verify", path).status == 0)
  }

  private func values(_ store: Store) throws -> [Key: [UInt8]] {
    var values: [Key: [UInt8]] = [:]
    var rows = try store.entries()
    while let entry = try rows.next() { values[entry.key] = entry.value }
    return values
  }

  /// What the store holds besides its entries.
  private func check(_ fixture: StoreFixture, _ store: Store) async throws {
    switch fixture {
    case .attachments:
      let reader = try #require(try store.attachment(forKey: "film/1"))
      #expect(try reader.read(0..<StoreFixture.content.count) == StoreFixture.content)
      #expect(try store.attachment(forKey: "film/3") == nil)
    case .cache:
      let pages = try store.cache(prefix: "pages/", policy: CachePolicy(capacity: 50))
      #expect(try pages.value(forKey: "79") == Array("page 79".utf8))
      #expect(try pages.value(forKey: "0") == nil)
    case .collections:
      let notes = try StoreFixture.notes(in: store)
      #expect(try notes.find(\.isDone == true).count == 20)
      #expect(try notes.search("words", TextQuery(StoreFixture.word)).map(\.object.id) == ["0"])
    case .replicated:
      #expect(try await store.pending(for: "home").entries == 3)
    default: break
    }
  }

  @Test(
    "the stores of a new version are written where TIDEMARK_WRITE_STORES says so",
    .enabled(if: ProcessInfo.processInfo.environment["TIDEMARK_WRITE_STORES"] != nil))
  func create() async throws {
    let version = try #require(StoreFixture.versions.last)
    let directory = Self.stores.appending(path: version).path
    try #require(Encryption.isAvailable, "one store is encrypted")
    try #require(!FileManager.default.fileExists(atPath: directory), "they are never written again")
    try FileManager.default.createDirectory(atPath: directory, withIntermediateDirectories: true)
    for fixture in StoreFixture.allCases {
      let (name, file) = (fixture.rawValue, file(version, fixture))
      try await fixture.write(to: tool.path(name))
      _ = try shell("tar -cf - \(name) | zstd -q -19 -o '\(file).tar.zst'")
      let store = try fixture == .damaged ? repaired(tool.path(name)) : tool.path(name)
      let exported = try run(fixture, "export", store, "--history", "--quiet", "--library-keys")
      try exported.output.write(to: URL(filePath: tool.path("out")))
      _ = try shell("zstd -q -19 out -o '\(file).ndjson.zst' && rm out")
    }
  }
}
