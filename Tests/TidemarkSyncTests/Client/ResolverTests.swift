import Foundation
import Testing

import Tidemark
@testable import TidemarkCollections
@testable import TidemarkSync
@testable import TidemarkSyncProtocol

@Suite("Conflicts")
struct ResolverTests {
  private func content(_ text: String?) -> SyncContent? {
    text.map { SyncContent(value: Array($0.utf8)) }
  }

  private func resolve(
    _ resolver: ConflictResolver, base: String? = nil, local: String?, remote: String?
  ) -> ConflictResolution {
    resolver.resolve(
      SyncConflict(
        key: "key", base: content(base), local: content(local),
        remote: content(remote)))
  }

  private func merged(_ base: String?, _ local: String, _ remote: String) -> String? {
    guard
      case .merged(let content) = resolve(
        .mergeFields(fallback: .ask), base: base, local: local, remote: remote)
    else { return nil }
    return String(decoding: content.value, as: UTF8.self)
  }

  @Test("fields that one side changed are taken from it")
  func fields() {
    #expect(
      merged(#"{"a":1,"b":2}"#, #"{"a":5,"b":2}"#, #"{"a":1,"b":7,"c":[1]}"#)
        == #"{"a":5,"b":7,"c":[1]}"#)
  }

  @Test("a field that one side took away is gone, one that both changed clashes")
  func removal() {
    #expect(merged(#"{"a":1,"b":2}"#, #"{"b":2}"#, #"{"a":1,"b":3}"#) == #"{"b":3}"#)
    #expect(merged(#"{"a":1}"#, #"{"a":2}"#, #"{"a":3}"#) == nil)
    #expect(merged(#"{"a":1}"#, #"{}"#, #"{"a":3}"#) == nil)
  }

  @Test("objects within objects are merged, arrays are taken whole")
  func nested() {
    #expect(
      merged(#"{"o":{"x":1,"y":1}}"#, #"{"o":{"x":2,"y":1}}"#, #"{"o":{"x":1,"y":3}}"#)
        == #"{"o":{"x":2,"y":3}}"#)
    #expect(merged(#"{"l":[1]}"#, #"{"l":[1,2]}"#, #"{"l":[1,3]}"#) == nil)
  }

  @Test("without a base fields that differ clash, others are united")
  func noBase() {
    #expect(merged(nil, #"{"a":1}"#, #"{"b":2}"#) == #"{"a":1,"b":2}"#)
    #expect(merged(nil, #"{"a":1}"#, #"{"a":2}"#) == nil)
  }

  @Test("a value that is no object goes by the fallback")
  func fallback() {
    #expect(resolve(.mergeFields(), local: "text", remote: "{}") == .local)
    #expect(resolve(.mergeFields(fallback: .remoteWins), local: "[]", remote: "{}") == .remote)
    #expect(resolve(.mergeFields(fallback: .ask), local: #"{"a":1,"a":2}"#, remote: "{}") == .ask)
  }

  private func merged(
    _ base: String?, _ local: String, _ remote: String, _ rule: FieldClashRule
  ) -> String? {
    let resolver = ConflictResolver.mergeFields(clash: rule, fallback: .ask)
    guard
      case .merged(let content) = resolver.resolve(
        SyncConflict(
          key: [1], base: content(base), local: content(local), remote: content(remote),
          localTime: Timestamp(seconds: 7), remoteTime: Timestamp(seconds: 8)))
    else { return nil }
    return String(decoding: content.value, as: UTF8.self)
  }

  @Test("names with an escape are merged like others, and count as what they stand for")
  func escapedNames() {
    #expect(
      merged(#"{"a\/b":"1","c":"1"}"#, #"{"a\/b":"1","c":"2"}"#, #"{"a/b":"1","c":"1","d":"3"}"#)
        == #"{"a\/b":"1","c":"2","d":"3"}"#)
    #expect(merged(#"{"é":1}"#, #"{"\u00e9":1,"x":1}"#, #"{"é":2}"#) == #"{"\u00e9":2,"x":1}"#)
  }

  @Test("values that say the same are no change, whatever their order, escapes and zeros")
  func sameValues() {
    let base = #"{"list":[{"x":1,"y":"a/b"}],"n":100,"t":1}"#
    #expect(
      merged(base, #"{"t":2,"list":[{"y":"a\/b","x":1.0}],"n":1e2}"#, #"{"list":[],"n":100,"t":1}"#)
        == #"{"t":2,"list":[],"n":1e2}"#)
    #expect(merged(base, #"{"n":1, "t":1,"list":[]}"#, base) == #"{"n":1, "t":1,"list":[]}"#)
    #expect(
      merged(nil, #"{"b":[{"x":1,"y":2}],"a":-0}"#, #"{"a":0.0,"b":[{"y":2,"x":1}]}"#)
        == #"{"a":0.0,"b":[{"y":2,"x":1}]}"#)
  }

  @Test("long numbers that differ in their last digit differ")
  func longNumbers() {
    let long = "123456789012345678901234567890"
    #expect(merged(nil, "{\"n\":\(long)}", "{\"n\":\(long)0e-1}") == "{\"n\":\(long)0e-1}")
    for other in ["\(long)1", "\(long).00000000000000000001", "-\(long)", "\"\(long)\""] {
      #expect(merged(nil, "{\"n\":\(long)}", "{\"n\":\(other)}") == nil, "\(other)")
    }
    #expect(merged(nil, #"{"n":1e99999999999}"#, #"{"n":10e99999999998}"#) == nil)
    #expect(merged(nil, #"{"n":0e99999999999}"#, #"{"n":-0}"#) == #"{"n":-0}"#)
  }

  @Test("one clashing field is decided by the rule, and the others are merged")
  func clashingField() {
    let (base, here, there) = (
      #"{"a":1,"b":1,"o":{"p":1}}"#, #"{"a":2,"b":1,"o":{"p":2}}"#, #"{"a":3,"b":7,"o":{"p":3}}"#
    )
    #expect(merged(base, here, there, .local) == #"{"a":2,"b":7,"o":{"p":2}}"#)
    #expect(merged(base, here, there, .remote) == there)
    #expect(merged(base, here, there, .latest) == there)
    #expect(merged(base, here, there, .asFallback) == nil)
    let byPath = FieldClashRule { clash in
      clash.path == ["o", "p"] ? .value(Array("[2,3]".utf8)) : .remote
    }
    #expect(merged(base, here, there, byPath) == #"{"a":3,"b":7,"o":{"p":[2,3]}}"#)
    #expect(merged(base, here, there, FieldClashRule { _ in .value(Array("{".utf8)) }) == nil)
    #expect(merged(#"{"a":1,"b":1}"#, #"{"a":2}"#, #"{"b":2}"#, .remote) == #"{"b":2}"#)
    guard case .merged(let kept) = resolve(.mergeFields(), base: base, local: here, remote: there)
    else {
      Issue.record("nothing was merged")
      return
    }
    #expect(String(decoding: kept.value, as: UTF8.self) == #"{"a":2,"b":7,"o":{"p":2}}"#)
  }

  @Test("values of Swift's own encoder are merged, however often they are encoded")
  func codable() throws {
    struct Item: Codable {
      var path = "image/png"
      var size = 1.5
      var tags = ["a/b", "c"]
    }
    struct Note: Codable {
      var title = "first"
      var isDone = false
      var items = [Item(), Item(), Item()]
      var links = ["a/b": "1", "c": "1"]
    }
    func text(_ note: Note) throws -> String {
      String(decoding: try JSONEncoder().encode(note), as: UTF8.self)
    }
    for _ in 0..<20 {
      var (here, there) = (Note(), Note())
      here.title = "second"
      here.links["c"] = "2"
      there.isDone = true
      there.links["d/e"] = "3"
      let result = try #require(merged(try text(Note()), try text(here), try text(there)))
      let note = try JSONDecoder().decode(Note.self, from: Data(result.utf8))
      #expect(note.title == "second" && note.isDone && note.items.count == 3)
      #expect(note.links == ["a/b": "1", "c": "2", "d/e": "3"])
    }
  }

  @Test("hostile texts are refused within bounds")
  func hostileTexts() {
    let deep = { (levels: Int) in
      "{\"a\":" + String(repeating: "[", count: levels) + String(repeating: "]", count: levels)
        + "}"
    }
    #expect(ParsedJSON(Array(deep(63).utf8)) != nil)
    #expect(ParsedJSON(Array(deep(64).utf8)) == nil)
    #expect(ParsedJSON(Array(deep(100_000).utf8)) == nil)
    let long = { (count: Int) in "[0" + String(repeating: ",0", count: count - 1) + "]" }
    #expect(ParsedJSON(Array(long(ParsedJSON.mostValues - 1).utf8)) != nil)
    #expect(ParsedJSON(Array(long(ParsedJSON.mostValues).utf8)) == nil)
    for text in ["", "{", #"{"a"}"#, #"{"a":1,}"#, #"{"a":1}x"#, #"{"a":"\ud800"}"#, #"{"a":01}"#] {
      #expect(ParsedJSON(Array(text.utf8)) == nil, "\(text)")
    }
    #expect(ParsedJSON(Array(#"{"a\/":1,"a/":2}"#.utf8)) == nil)
  }

  @Test("a merge that no entry holds goes by the fallback")
  func tooManyLabels() {
    let resolver = ConflictResolver.mergeFields(fallback: .ask)
    var (local, remote) = (
      SyncContent(value: Array("{}".utf8)), SyncContent(value: Array("{}".utf8))
    )
    local.labels = (0..<40).map { EntryLabel("a\($0)") }
    remote.labels = (0..<40).map { EntryLabel("b\($0)") }
    #expect(
      resolver.resolve(SyncConflict(key: [1], base: nil, local: local, remote: remote)) == .ask)
  }

  @Test("an edit survives a delete unless it was asked for otherwise")
  func deleteEdit() {
    #expect(resolve(.localWins, local: "mine", remote: nil) == .local)
    #expect(resolve(.localWins, local: nil, remote: "theirs") == .remote)
    let strict = ConflictResolver(deleteEdit: .deleteWins) { _ in .ask }
    #expect(resolve(strict, local: "mine", remote: nil) == .remote)
    #expect(resolve(strict, local: nil, remote: "theirs") == .local)
    #expect(resolve(.remoteWins, local: "mine", remote: nil) == .remote)
    #expect(resolve(.ask, local: "mine", remote: nil) == .ask)
  }

  @Test("the default resolver follows the policy of the collection, and else keeps local changes")
  func byPolicy() {
    func resolve(_ policy: ConflictPolicy, _ local: Int, _ remote: Int, deletes: Bool = false)
      -> ConflictResolution
    {
      let value = SyncContent(value: [1])
      return ConflictResolver.byPolicy.resolve(
        SyncConflict(
          key: [1], base: nil, local: deletes ? nil : value, remote: SyncContent(value: [2]),
          localTime: Timestamp(seconds: Int64(local)),
          remoteTime: Timestamp(seconds: Int64(remote)), policy: policy))
    }
    #expect(resolve(.detect, 1, 2) == .local && resolve(.detect, 2, 1) == .local)
    #expect(resolve(.detect, 2, 1, deletes: true) == .remote)
    #expect(resolve(.lastWriterWins, 1, 2) == .remote && resolve(.lastWriterWins, 2, 1) == .local)
    #expect(resolve(.lastWriterWins, 2, 2) == .remote)
    #expect(resolve(.lastWriterWins, 2, 1, deletes: true) == .local)
  }

  @Test("both are kept under two keys")
  func both() {
    #expect(
      resolve(.keepBoth(), local: "a", remote: "b") == .both(localKey: "key (local)"))
    #expect(resolve(.keepBoth(), local: nil, remote: nil) == .remote)
  }
}
