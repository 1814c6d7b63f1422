import Foundation
import Testing

/// Every rule of RFC 9111 and its companions that the cache keeps, against a server behind sockets.
@Suite("Rules of HTTP caches") struct CacheRuleTests {
  static let all = StorageCases.all + FreshnessCases.all + ValidationCases.all + RangeCases.all

  @Test("each rule holds", arguments: all)
  func rule(rule: CacheCase) async throws {
    let bench = try CacheBench()
    do { try await bench.run(rule.steps) } catch {
      try await bench.close()
      throw error
    }
    try await bench.close()
  }

  @Test("there are 120 rules at least, each with a name of its own")
  func count() {
    #expect(Self.all.count >= 120)
    #expect(Set(Self.all.map(\.testDescription)).count == Self.all.count)
  }

  @Test("the article's table has these rules")
  func table() throws {
    let article = URL(filePath: #filePath).deletingLastPathComponent()
      .appending(path: "../../../Sources/TidemarkHTTPCache/TidemarkHTTPCache.docc/CacheRules.md")
    let text = try String(contentsOf: article, encoding: .utf8)
    let rows = text.split(separator: "\n").filter { $0.hasPrefix("| RFC ") }.map(String.init)
    let expected = Self.all.map { "| RFC \($0.section) | \($0.name) |" }
    // `TIDEMARK_WRITE_RULES=1` writes the table anew.
    if ProcessInfo.processInfo.environment["TIDEMARK_WRITE_RULES"] == "1" {
      let head = text.components(separatedBy: "| --- | --- |\n")[0]
      let table = expected.joined(separator: "\n") + "\n"
      try Data((head + "| --- | --- |\n" + table).utf8).write(to: article)
      return
    }
    #expect(rows == expected)
  }
}
