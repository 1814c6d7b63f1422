import Testing
import Tidemark
import TidemarkTestKit

@testable import TidemarkSyncProtocol
@testable import TidemarkSyncServer

@Suite("Scopes")
struct ScopeTests {
  private func contains(_ scope: SyncScope, _ key: [UInt8], _ labels: [EntryLabel]) -> Bool {
    scope.isEverything || labels.contains { scope.labels.contains($0) }
      || scope.prefixBytes.contains { key.starts(with: $0) }
  }

  /// A text of few different bytes, so that many begin with others.
  private func text(_ chance: inout SeededGenerator, from least: Int) -> [UInt8] {
    (0..<Int.random(in: least...4, using: &chance)).map { _ in
      [0, 1, 127, 128, 255][Int.random(in: 0..<5, using: &chance)]
    }
  }

  @Test("a lookup finds what a look at every prefix and label finds, in whatever order they are")
  func lookup() {
    for seed in UInt64(0)..<300 {
      var chance = SeededGenerator(seed: seed)
      var scope = SyncScope()
      let least = seed % 7 == 0 ? 0 : 1
      for _ in 0..<Int.random(in: 0...12, using: &chance) {
        scope.prefixBytes.append(text(&chance, from: least))
      }
      for _ in 0..<Int.random(in: 0...6, using: &chance) {
        scope.labels.append(EntryLabel(text(&chance, from: 1)))
      }
      for _ in 0..<50 {
        let key = text(&chance, from: 1)
        let labels = (0..<Int.random(in: 0...2, using: &chance)).map { _ in
          EntryLabel(text(&chance, from: 1))
        }
        #expect(
          scope.contains(key: key, labels: labels) == contains(scope, key, labels),
          "seed \(seed), key \(key), labels \(labels), \(scope)")
        #expect(
          scope.contains(key: key, labels: labels.map(\.bytes))
            == contains(scope, key, labels), "seed \(seed)")
      }
    }
  }

  @Test("a scope is made of text, bytes and keys, and shows its prefixes as keys")
  func convertible() {
    let project = "7"
    let other: Key = "task/"
    var scope = SyncScope(keyPrefixes: ["note/" + project, other, [UInt8]([0xff])])
    #expect(scope.keyPrefixes == ["note/7", "task/", Key([0xff])])
    #expect(scope.contains(key: "note/7/title", labels: []))
    #expect(!scope.contains(key: "note/8", labels: []))
    scope.keyPrefixes.append("note/8")
    #expect(scope.contains(key: "note/" + "8", labels: []))
    #expect(scope == SyncScope(keyPrefixes: scope.keyPrefixes))
    let access = SyncAccess(to: scope)
    #expect(access.reaches(key: other.bytes, labels: []))
    #expect(!access.reaches(key: Array("n".utf8), labels: []))
  }

  @Test("scopes are equal by what they were given, and a changed one is looked up anew")
  func changed() {
    var scope = SyncScope(prefixBytes: [[1], [1, 2]])
    #expect(
      scope == SyncScope(prefixBytes: [[1], [1, 2]]) && scope != SyncScope(prefixBytes: [[1]]))
    #expect(scope.hashValue == SyncScope(prefixBytes: [[1], [1, 2]]).hashValue)
    scope.keyPrefixes = [Key([2])]
    #expect(scope.contains(key: [2, 9], labels: [EntryLabel]()))
    #expect(!scope.contains(key: [1, 2], labels: [EntryLabel]()))
    scope.labels = [EntryLabel([7])]
    #expect(scope.contains(key: [1], labels: [EntryLabel([7])]))
  }
}
