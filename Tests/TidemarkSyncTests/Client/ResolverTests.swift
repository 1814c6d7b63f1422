import Testing

@testable import TidemarkSync

@Suite("Conflicts")
struct ResolverTests {
  private func content(_ text: String?) -> SyncContent? {
    text.map { SyncContent(value: Array($0.utf8)) }
  }

  private func resolve(
    _ resolver: ConflictResolver, base: String? = nil, local: String?, remote: String?
  ) -> Resolution {
    resolver.resolve(
      Conflict(
        key: Array("key".utf8), base: content(base), local: content(local),
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

  @Test("what is no object goes by the fallback")
  func fallback() {
    #expect(resolve(.mergeFields(), local: "text", remote: "{}") == .local)
    #expect(resolve(.mergeFields(fallback: .remoteWins), local: "[]", remote: "{}") == .remote)
    #expect(resolve(.mergeFields(fallback: .ask), local: #"{"a":1,"a":2}"#, remote: "{}") == .ask)
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

  @Test("both are kept under two keys")
  func both() {
    #expect(
      resolve(.keepBoth(), local: "a", remote: "b") == .both(localKey: Array("key (local)".utf8)))
    #expect(resolve(.keepBoth(), local: nil, remote: nil) == .remote)
  }
}
