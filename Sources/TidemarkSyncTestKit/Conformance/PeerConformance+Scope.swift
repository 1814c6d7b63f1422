internal import Tidemark
internal import TidemarkSync

extension PeerConformance {
  /// Reading a part of the feed.
  static let scopeChecks: [Check] = [
    Check("a scope gets what bears its labels, and hears of what leaves it") { bench in
      var a = try await bench.writer(1)
      let (reader, scope) = (Writer(2).replica, SyncScope(labels: ["in"]))
      try await bench.push(
        &a, a.put("in 1", "1", labels: ["in"]), a.put("out", "1", labels: ["other"]),
        a.put("in 2", "1", labels: ["in", "other"]))
      let first = try await bench.pullAll(reader, scope: scope)
      try bench.expect(
        first.entries.map(\.key), is: ["in 1", "in 2"].map { Array($0.utf8) }, "what came")
      let places = first.entries.map(\.position)
      try await bench.push(
        &a, a.put("in 1", "2", labels: ["other"], base: .position(places[0])),
        a.delete("in 2", base: .position(places[1])), a.put("out 2", "1"))
      let second = try await bench.pullAll(reader, after: first.cursor, scope: scope)
      try bench.expect(second.entries.map(\.kind), is: [.left, .delete], "what came then")
      try bench.expect(
        second.entries.map(\.key), is: ["in 1", "in 2"].map { Array($0.utf8) }, "its keys")
      try bench.expect(
        second.entries.allSatisfy(\.content.value.isEmpty), "the value of what left is told")
      try bench.expect(
        second.cursor.offset > second.entries[1].position.offset,
        "the cursor does not pass over what is outside the scope")
    },
    Check("a scope gets the keys with its prefixes") { bench in
      var a = try await bench.writer(1)
      try await bench.push(&a, a.put("a/1", "1"), a.put("b/1", "1"), a.put("c/1", "1"))
      let scope = SyncScope(keyPrefixes: ["a/", "c/"])
      let entries = try await bench.pullAll(Writer(2).replica, scope: scope).entries
      try bench.expect(
        entries.map(\.key), is: ["a/1", "c/1"].map { Array($0.utf8) }, "what came")
    },
  ].map { Check($0.description, needs: [.numbers], $0.body) }
}
