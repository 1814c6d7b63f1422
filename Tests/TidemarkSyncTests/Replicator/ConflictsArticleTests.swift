import Foundation
import Testing
import Tidemark
import TidemarkTestKit

@testable import TidemarkSync
@testable import TidemarkSyncProtocol
@testable import TidemarkSyncServer

/// The steps of `Conflicts.md` are done here. Its snippets are lines of this file, except those
/// that import other modules: the tests of the documentation compile these.
@Suite("The article on conflicts", .timeLimit(.minutes(20)))
struct ConflictsArticleTests {
  private static let folder = URL(filePath: #filePath).deletingLastPathComponent()

  private static func article() throws -> [String] {
    let path = "../../../Sources/TidemarkSync/TidemarkSync.docc/Conflicts.md"
    let file = folder.appending(path: path).standardizedFileURL
    return try String(contentsOf: file, encoding: .utf8).components(separatedBy: "\n")
  }

  /// The text that stands behind a name in a table, without backticks.
  private static func row(_ name: String) throws -> String {
    let row = try #require(try article().first { $0.hasPrefix("| \(name) | ") }, "\(name)")
    return String(row.dropFirst("| \(name) | ".count).dropLast(" |".count).filter { $0 != "`" })
  }

  @Test("every snippet is compiled: its lines stand in this file, one behind the other")
  func snippets() throws {
    let source = try String(contentsOf: URL(filePath: #filePath), encoding: .utf8)
    let lines = source.split(separator: "\n").map { $0.drop { $0 == " " } }
    var snippet: [Substring]?
    var count = 0
    for line in try Self.article() {
      if line == "```swift" {
        snippet = []
      } else if line == "```", let wanted = snippet {
        snippet = nil
        if wanted.contains(where: { $0.hasPrefix("import ") }) { continue }
        count += 1
        #expect(
          lines.indices.contains { lines[$0...].starts(with: wanted) },
          "\(wanted.joined(separator: "\n"))")
      } else {
        // Without the comment behind a line of code.
        let code = line.replacing(/(\S) +\/\/ .*$/) { String($0.1) }
        snippet?.append(code.drop { $0 == " " })
      }
    }
    #expect(count == 6)
  }

  /// A server, and two stores that hold the same and have then written without knowing of each
  /// other; the second one's writes wait for its resolver.
  private func meet(
    _ keys: [String], _ resolver: ConflictResolver
  ) async throws -> (store: Store, replicator: Replicator, other: Replicator) {
    let peer = try SwitchedPeer()
    let (store, first) = (try memoryStore(), try memoryStore())
    let replicator = try store.replicator(named: "home", peer: peer, resolver: resolver)
    let other = try first.replicator(named: "home", peer: peer)
    for key in keys { try await first.put(key, "base") }
    _ = try await other.syncOnce()
    _ = try await replicator.syncOnce()
    for key in keys {
      try await first.put(key, "first")
      try await store.put(key, "second")
    }
    _ = try await other.syncOnce()
    _ = try await replicator.syncOnce()
    return (store, replicator, other)
  }

  @Test("each built-in resolver ends as the table says, here and elsewhere")
  func builtIn() async throws {
    let cases: [(ConflictResolver, here: String, there: String, beside: String?)] = [
      (.localWins, "second", "second", nil), (.remoteWins, "first", "first", nil),
      (.keepBoth(), "first", "first", "second"),
      (.mergeFields(fallback: .remoteWins), "first", "first", nil), (.ask, "second", "first", nil),
    ]
    for (resolver, here, there, beside) in cases {
      let (store, _, other) = try await meet(["key"], resolver)
      _ = try await other.syncOnce()
      #expect(try store.text("key") == here)
      #expect(try other.store.text("key") == there)
      for store in [store, other.store] { #expect(try store.text("key (local)") == beside) }
    }
  }

  @Test("the three-way merge of the article is what comes out")
  func merge() async throws {
    let peer = try SwitchedPeer()
    let (store, other) = (try memoryStore(), try memoryStore())
    let replicator = try store.replicator(named: "home", peer: peer, resolver: .mergeFields())
    let second = try other.replicator(named: "home", peer: peer)
    try await store.put("key", try Self.row("base"), labels: ["gone", "kept"])
    _ = try await replicator.syncOnce()
    _ = try await second.syncOnce()
    try await other.put("key", try Self.row("server"), labels: ["kept", "new"])
    _ = try await second.syncOnce()
    try await store.put("key", try Self.row("here"), labels: ["gone", "kept", "own"])
    _ = try await replicator.syncOnce()
    _ = try await second.syncOnce()
    #expect(try store.entry(forKey: "key")?.labels == ["kept", "new", "own"])
    for store in [store, other] { #expect(try store.text("key") == Self.row("result")) }
  }

  @Test("the report counts what was merged, which fields clashed and what fell back")
  func counts() async throws {
    let byField = ConflictResolver.mergeFields(
      clash: FieldClashRule { clash in
        switch clash.path {
        case ["title"]: .remote
        case ["stock"]: .fallback
        default: clash.remoteTime.map { clash.localTime >= $0 ? .local : .remote } ?? .ask
        }
      }, fallback: .ask)
    let peer = try SwitchedPeer()
    let (store, first) = (try memoryStore(), try memoryStore())
    let replicator = try store.replicator(named: "home", peer: peer, resolver: byField)
    let other = try first.replicator(named: "home", peer: peer)
    let values: [(key: Key, base: String, there: String, here: String)] = [
      ("merged", #"{"a":1,"b":1}"#, #"{"b":2,"a":1.0}"#, #"{"a":2,"b":1}"#),
      ("title", #"{"title":1,"b":1}"#, #"{"title":2,"b":2}"#, #"{"title":3,"b":1,"c":1}"#),
      ("stock", #"{"stock":1}"#, #"{"stock":2}"#, #"{"stock":3}"#),
      (
        "same", #"{"c":"/","d":[{"x":1,"y":2}]}"#, #"{"d":[{"y":3,"x":1}],"c":"\/"}"#,
        #"{"c":"/","d":[{"x":1,"y":3}]}"#
      ),
      ("text", "1", "2", "3"),
    ]
    for value in values { try await first.put(value.key, value.base) }
    _ = try await other.syncOnce()
    _ = try await replicator.syncOnce()
    for value in values {
      try await first.put(value.key, value.there)
      try await store.put(value.key, value.here)
    }
    _ = try await other.syncOnce()

    let report = try await replicator.syncOnce()
    print("\(report.conflicts) in conflict, \(report.merged) merged")
    print("\(report.clashes) fields clashed, \(report.fellBack) values fell back")
    #expect(report.conflicts == 5 && report.merged == 2)
    #expect(report.clashes == 2 && report.fellBack == 2)
    #expect(replicator.status.conflicts == 5 && replicator.status.merged == 2)
    #expect(try store.text("merged") == #"{"a":2,"b":2}"#)
    #expect(try store.text("title") == #"{"title":2,"b":2,"c":1}"#)
    // Nothing was sent but what was merged.
    #expect(report.pushed == 2 && report.pending.needsDecision == 2)
    #expect(try store.text("same") == values[3].there)
  }

  @Test("a user who is asked sees both sides, and decides in one of four ways or by writing")
  func decide() async throws {
    let keys = (1...5).map { "note/\($0)" }
    let (store, replicator, other) = try await meet(keys, .ask)
    var shown: [String] = []
    func show(_ key: Key, mine: [UInt8]?, theirs: [UInt8]?) {
      let sides = [mine, theirs].map { String(decoding: $0 ?? [], as: UTF8.self) }
      shown.append("\(key): \(sides[0]), \(sides[1])")
    }
    for conflict in try await replicator.conflicts() {
      show(conflict.key, mine: conflict.local?.value, theirs: conflict.remote?.value)
    }
    #expect(shown.sorted() == keys.map { "\($0): second, first" })
    for conflict in try await replicator.conflicts() {
      print(conflict.key, conflict.local?.value.count ?? 0, conflict.remote?.value.count ?? 0)
    }
    let pending = try await store.pending(for: "home")
    #expect(pending.entries == 0 && pending.needsDecision == 5)
    #expect(
      try await store.pendingEntries(for: "home").entries.map(\.state)
        == Array(repeating: .needsDecision, count: 5))

    try await replicator.decide("note/1", .local)
    try await replicator.decide("note/2", .remote)
    try await replicator.decide("note/3", .merged(SyncContent(value: Array("both".utf8))))
    try await replicator.decide("note/4", .both(localKey: "note/4 (mine)"))
    try await store.put("note/5", "written")
    await #expect(throws: TidemarkError.self) { try await replicator.decide("note/1", .local) }

    _ = try await replicator.syncOnce()
    _ = try await other.syncOnce()
    for store in [store, other.store] {
      #expect(
        try (keys + ["note/4 (mine)"]).map { try store.text($0) }
          == ["second", "first", "both", "first", "written", "second"])
    }
    #expect(try await replicator.conflicts().isEmpty)
  }

  @Test("a delete and an edit end as the table says")
  func deleteEdit() {
    let strict = ConflictResolver(deleteEdit: .deleteWins) { _ in .local }
    let newerWins = ConflictResolver { conflict in
      // A back end of your own may not say when: then nobody knows which is newer.
      guard let remoteTime = conflict.remoteTime else { return .ask }
      return conflict.localTime >= remoteTime ? .local : .remote
    }
    let value = SyncContent(value: [1])
    func ends(_ resolver: ConflictResolver) -> [ConflictResolution] {
      [
        resolver.resolve(SyncConflict(key: [1], base: value, local: value, remote: nil)),
        resolver.resolve(SyncConflict(key: [1], base: value, local: nil, remote: value)),
      ]
    }
    #expect(ends(strict) == [.remote, .local])
    for resolver in [newerWins, .localWins, .keepBoth(), .mergeFields()] {
      #expect(ends(resolver) == [.local, .remote])
    }
    #expect(ends(.remoteWins) == [.remote, .remote] && ends(.ask) == [.ask, .ask])
    #expect(ends(.mergeFields(fallback: .ask)) == [.ask, .ask])
  }
}
