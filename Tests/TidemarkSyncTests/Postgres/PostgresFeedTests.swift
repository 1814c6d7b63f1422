#if PostgreSQL
  import Foundation
  import Testing
  import Tidemark
  import TidemarkEngine
  import TidemarkTestKit

  @testable import TidemarkPostgres
  @testable import TidemarkSyncProtocol
  @testable import TidemarkSyncServer

  @Suite("Feeds in PostgreSQL", .enabled(if: PostgresTrial.url != nil))
  struct PostgresFeedTests {
    private func handlers(
      _ options: SyncHandler.Options = SyncHandler.Options()
    ) throws -> [SyncHandler] {
      try PostgresTrial.feeds().map { try SyncHandler(feed: $0, options: options) }
    }

    private func push(
      _ device: inout Device, _ changes: PushedChange..., to handler: SyncHandler
    ) throws -> [String] {
      if device.number == 0 { _ = try handler.hello(HelloRequest(replica: device.id)) }
      device.number += 1
      return try handler.push(device.batch(changes)).mark.verdicts.map(\.name)
    }

    private func keys(_ handler: SyncHandler) throws -> [String] {
      let page = try handler.pull(PullRequest(replica: Device(9).id, after: .beginning))
      return page.entries.map {
        String(decoding: $0.key, as: UTF8.self) + ($0.kind == .put ? "" : " deleted")
      }
    }

    @Test("no statement reads all rows of a database to find some of them")
    func plans() throws {
      let statements = [
        Statements.states, Statements.append, Statements.page, Statements.heads,
        Statements.values, Statements.dropSuperseded, Statements.dropDeletes,
        ContentStatements.addReferences, Inbox.settle,
      ]
      let settings = try PostgresTrial.settings()
      // Behind a pooler the role says how statements are planned.
      if settings.isPooled { return }
      let connection = try Connection(settings)
      for statement in statements {
        let last = statement.text.matches(of: /\$([0-9]+)/).compactMap { Int($0.output.1) }.max()
        let nulls = Array(repeating: "NULL", count: last ?? 0).joined(separator: ", ")
        let rows = try connection.read([
          Statement("PREPARE looked_at AS \(statement.text)")(),
          Statement("EXPLAIN (COSTS off) EXECUTE looked_at(\(nulls))")(),
          Statement("DEALLOCATE looked_at")(),
        ])
        var scanned = ""
        for var row in rows[1].all {
          let line = try row.text().trimmingPrefix { $0 == " " }
          if line.contains(" on tm_") { scanned = String(line) }
          let isLarge = ["tm_entry", "tm_key", "tm_ref", "tm_inbox"].contains {
            scanned.contains($0)
          }
          let isWhole =
            isLarge && line.contains(/^Index Cond: \(\w+ = \$1\)/)
            || line.hasPrefix("->  Seq Scan on tm_") || line.hasPrefix("Join Filter")
          #expect(!isWhole, "\(scanned) \(line) in \(statement.text.prefix(60))")
        }
      }
    }

    @Test("a compaction deletes superseded entries and old tombstones, and no key's current value")
    func compaction() throws {
      let servers = try handlers(SyncHandler.Options(lease: .seconds(0)))
      var a = Device(1)
      for round in 1...40 as ClosedRange<UInt64> {
        let base: ChangeBase = round == 1 ? .absent : .operation(sequence: 2 * round - 3)
        let other: ChangeBase = round == 1 ? .absent : .operation(sequence: 2 * round - 2)
        let names = try push(
          &a, a.put("k", "\(round)", base: base), a.put("l", "\(round)", base: other),
          to: servers[0])
        #expect(names == ["applied", "applied"])
      }
      #expect(
        try push(&a, a.delete("l", base: .operation(sequence: 80)), to: servers[1]) == ["applied"])
      let digest = DigestRequest(replica: Device(9).id)
      let before = try servers[0].digest(digest).parts
      let space = try servers[0].space()
      let summary = try servers[0].compact()
      #expect(summary.droppedEntries == 80 && summary.droppedTombstones == 1)
      let after = try servers[1].space()
      #expect(after.log < space.log / 20 && after.reclaimable == 0)
      #expect(try servers[1].digest(digest).parts == before)
      #expect(
        try servers[1].values(
          ValuesRequest(replica: a.id, keys: [Array("k".utf8)])
        ).entries.map(\.content.value) == [
          Array("40".utf8)
        ])
      #expect(try keys(servers[1]) == ["k"])
      #expect(
        try push(&a, a.put("k", "last", base: .operation(sequence: 79)), to: servers[0])
          == ["applied"])
      #expect(try push(&a, a.put("l", "again"), to: servers[0]) == ["applied"])
      #expect(try servers[0].compact().droppedEntries == 1)
    }

    @Test("keys of 65,535 bytes that differ in the last byte are kept and compared as two")
    func longKeys() throws {
      let servers = try handlers()
      var a = Device(1)
      let long = String(repeating: "x", count: Limits.keyBytes - 1)
      for end in ["a", "b"] {
        #expect(try push(&a, a.put(long + end, end), to: servers[0]) == ["applied"])
      }
      #expect(
        try push(&a, a.put(long + "a", "2", base: .operation(sequence: 1)), to: servers[1])
          == ["applied"])
      let request = ValuesRequest(replica: a.id, keys: [Array((long + "b").utf8)])
      #expect(try servers[1].values(request).entries.map(\.content.value) == [Array("b".utf8)])
      #expect(try servers[1].digest(DigestRequest(replica: a.id)).parts[0].total.keys == 2)
    }

    @Test("a server hears of what another one has appended", .timeLimit(.minutes(20)))
    func news() async throws {
      let servers = try handlers()
      var a = Device(1)
      _ = try push(&a, a.put("k", "1"), to: servers[0])
      let heard = Lock(0)
      let token = servers[1].observe { heard.withLock { $0 += 1 } }
      defer { servers[1].stopObserving(token) }
      _ = try push(&a, a.put("l", "1"), to: servers[0])
      while heard.withLock({ $0 }) == 0 { try await Task.sleep(for: .milliseconds(5)) }
    }

    @Test("another life of the primary begins an epoch, and only one")
    func epochs() throws {
      let feeds = try PostgresTrial.servers.get()[0]
      let name = "test \(UUID())"
      let handler = try feeds.handler(of: name)
      var a = Device(1)
      _ = try push(&a, a.put("k", "1"), to: handler)
      func epochs() throws -> [FeedEpoch] {
        try handler.hello(HelloRequest(replica: a.id)).range.epochs
      }
      let first = try epochs()
      #expect(first.count == 1)
      try feeds.beginNewEpoch(of: name)
      #expect(try epochs() == first)
      for key in ["l", "m"] { #expect(try push(&a, a.put(key, "1"), to: handler) == ["applied"]) }
      let second = try epochs()
      #expect(second.count == 2 && second[0] == first[0])
    }

    @Test("after a deletion calls fail, and a new database of the same name has another feed id")
    func deletion() throws {
      let feeds = try PostgresTrial.servers.get()[0]
      let name = "test \(UUID())"
      let old = try feeds.handler(of: name)
      var a = Device(1)
      _ = try push(&a, a.put("k", "1"), to: old)
      #expect(try feeds.delete(name))
      #expect(try !feeds.delete(name) && !feeds.has(name))
      #expect(failure { _ = try old.hello(HelloRequest(replica: a.id)) } == .unavailable)
      #expect(throws: TidemarkError.self) { try feeds.handler(of: name, creating: false) }
      let new = try feeds.handler(of: name)
      #expect(new.feedID != old.feedID)
      #expect(try keys(new) == [])
    }
  }
#endif
