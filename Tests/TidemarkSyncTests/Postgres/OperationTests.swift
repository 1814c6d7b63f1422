#if PostgreSQL
  import Foundation
  import Testing
  import Tidemark
  import TidemarkEngine
  import TidemarkPostgres
  import TidemarkTestKit

  @testable import TidemarkSyncProtocol
  @testable import TidemarkSyncServer

  @Suite("Operation of databases in PostgreSQL", .enabled(if: PostgresTrial.url != nil))
  struct OperationTests {
    private let settings: PostgresSettings
    /// Two servers of the same databases.
    private let feeds: [PostgresFeeds]
    private let name = "test-\(UUID())"

    init() throws {
      settings = PostgresSettings(url: try #require(PostgresTrial.url))
      try PostgresFeeds.applySchema(settings)
      feeds = [try PostgresFeeds(settings), try PostgresFeeds(settings)]
    }

    private func push(
      _ device: inout Device, _ changes: PushedChange..., to handler: SyncHandler
    ) throws -> [String] {
      if device.number == 0 { _ = try handler.hello(HelloRequest(replica: device.id)) }
      device.number += 1
      return try handler.push(device.batch(changes)).mark.verdicts.map(\.name)
    }

    @Test("puts beyond the quota are rejected by every server, deletes and what fits are taken")
    func quota() throws {
      let handlers = try feeds.map { try $0.handler(of: name) }
      var a = Device(1)
      #expect(
        try push(&a, a.put("k", String(repeating: "v", count: 900)), to: handlers[0]) == [
          "applied"
        ])
      let used = try feeds[1].status(of: name).bytes
      try feeds[1].setQuota(used + 400, of: name)
      let verdicts = try push(
        &a, a.put("big", String(repeating: "v", count: 900)), a.put("small", "v"),
        a.put("second", String(repeating: "v", count: 200)), to: handlers[0])
      #expect(verdicts == ["quota", "applied", "quota"])
      #expect(
        try push(&a, a.delete("k", base: .operation(sequence: 1)), to: handlers[1]) == [
          "applied"
        ])
      #expect(try feeds[0].status(of: name).bytes > used)
      let group = try push(
        &a, a.put("one", "v", group: 1), a.put("two", String(repeating: "v", count: 900), group: 1),
        to: handlers[0])
      #expect(group == ["aborted", "quota"])
      try feeds[0].setQuota(0, of: name)
      #expect(try push(&a, a.put("big", "v"), to: handlers[1]) == ["applied"])
    }

    @Test(
      "a database that is read-only answers pushes with unavailable, and still tells of old ones")
    func readOnly() throws {
      let handlers = try feeds.map { try $0.handler(of: name) }
      var a = Device(1)
      #expect(try push(&a, a.put("k", "1"), to: handlers[0]) == ["applied"])
      try feeds[0].setReadOnly(true, of: name)
      let old = try handlers[1].push(a.batch([])).mark
      #expect(old.number == 1 && old.verdicts.map(\.name) == ["applied"])
      a.number += 1
      let change = a.put("l", "1")
      #expect(failure { _ = try handlers[1].push(a.batch([change])) } == .unavailable)
      #expect(
        try handlers[1].pull(PullRequest(replica: a.id, after: .beginning)).entries.count == 1)
      try feeds[1].setReadOnly(false, of: name)
      #expect(try handlers[0].push(a.batch([change])).mark.verdicts.map(\.name) == ["applied"])
    }

    @Test("who is revoked at one server is refused by others, until it is restored")
    func revocations() async throws {
      let id = UUID().uuidString.replacing("-", with: "")
      let revocation = Revocation(.replica, id)
      let heard = Lock(0)
      feeds[1].onRevocation { heard.withLock { $0 += 1 } }
      try feeds[0].setRevoked(true, revocation)
      while !feeds[1].isRevoked(revocation) { try await Task.sleep(for: .milliseconds(5)) }
      #expect(heard.withLock { $0 } > 0)
      #expect(feeds[1].isRevoked(Revocation(.replica, id.lowercased())))
      #expect(!feeds[1].isRevoked(Revocation(.subject, id)))
      #expect(try feeds[0].revocations().contains(revocation))
      try feeds[1].setRevoked(false, revocation)
      while feeds[0].isRevoked(revocation) { try await Task.sleep(for: .milliseconds(5)) }
      #expect(throws: TidemarkError.self) {
        try feeds[0].setRevoked(true, Revocation(.replica, "x"))
      }
    }

    @Test("replicas are listed with what they lack, and databases by name")
    func lists() throws {
      let handler = try feeds[0].handler(of: name)
      var (a, b) = (Device(1), Device(2))
      #expect(
        try push(&a, a.put("k", "1"), a.put("l", "1"), to: handler) == ["applied", "applied"])
      _ = try handler.hello(HelloRequest(replica: b.id))
      b.number = 1
      let replicas = try feeds[1].replicas(of: name)
      #expect(
        replicas.map(\.replica)
          == [b, a].map { id in
            id.id.bytes.map { "0" + String($0) }.joined()
          })
      #expect(replicas.map(\.lag) == [3, 0] && replicas.map(\.batches) == [0, 1])
      #expect(try feeds[1].statuses(after: String(name.dropLast())).first?.database == name)
      #expect(throws: TidemarkError.self) { try feeds[1].status(of: name + "x") }
    }

    @Test("a handler of a database that another server has deleted says so")
    func deleted() throws {
      let handler = try feeds[0].handler(of: name)
      var a = Device(1)
      #expect(try push(&a, a.put("k", "1"), to: handler) == ["applied"])
      #expect(!handler.isClosed)
      try feeds[1].delete(name)
      #expect(
        failure { _ = try handler.pull(PullRequest(replica: a.id, after: .beginning)) }
          == .unavailable)
      #expect(handler.isClosed)
      #expect(try feeds[0].handler(of: name).feedID != handler.feedID)
    }

    @Test("a copied database has all that its directory had, and devices go on in a new epoch")
    func copy() throws {
      let directory = FileManager.default.temporaryDirectory.appending(path: "\(UUID()).tidemark")
      defer { try? FileManager.default.removeItem(at: directory) }
      var (a, b) = (Device(1), Device(2))
      let store = try SyncHandler(at: directory.path)
      try store.setPolicy(.lastWriterWins, forKeysWithPrefix: "w/")
      for round in 1...30 as ClosedRange<UInt64> {
        let base: ChangeBase = round == 1 ? .absent : .operation(sequence: 2 * round - 3)
        #expect(
          try push(
            &a, a.put("k", "\(round)", base: base), a.put("key \(round)", "v", labels: ["l"]),
            to: store) == ["applied", "applied"])
      }
      #expect(
        try push(&a, a.delete("key 7", base: .operation(sequence: 14)), to: store) == [
          "applied"
        ])
      _ = try store.hello(HelloRequest(replica: b.id))
      let page = try store.pull(PullRequest(replica: b.id, after: .beginning))
      let digest = DigestRequest(replica: Device(9).id)
      let (parts, policies) = (try store.digest(digest).parts, store.policies)
      let hello = try store.hello(HelloRequest(replica: b.id, cursor: page.cursor))
      try store.close()
      #expect(try feeds[0].copy(fromStoreAt: directory.path, to: name) == 61)
      let copy = try feeds[1].handler(of: name)
      #expect(copy.feedID == store.feedID && copy.policies == policies && policies.count == 1)
      #expect(try copy.digest(digest).parts == parts)
      let again = try copy.hello(HelloRequest(replica: b.id, cursor: page.cursor))
      #expect(again.range == hello.range && again.mark == hello.mark)
      #expect(again.isLeaseExpired == hello.isLeaseExpired)
      let next = try copy.pull(PullRequest(replica: b.id, after: page.cursor))
      #expect(next.entries.isEmpty)
      // The next batch of a device is the next one, and its base is known.
      #expect(
        try push(&a, a.put("k", "last", base: .operation(sequence: 59)), to: copy) == ["applied"])
      #expect(
        try copy.hello(HelloRequest(replica: b.id, cursor: page.cursor)).range.epochs.count
          == hello.range.epochs.count + 1)
      #expect(try copy.pull(PullRequest(replica: b.id, after: page.cursor)).entries.count == 1)
      let space = try copy.space()
      #expect(space.log == (try feeds[0].status(of: name).bytes) && space.reclaimable > 0)
      #expect(throws: TidemarkError.self) {
        try feeds[0].copy(fromStoreAt: directory.path, to: name)
      }
    }

    @Test("a server that requires a synchronous standby is not ready without one")
    func requiredStandby() throws {
      var settings = settings
      settings.requiresStandby = true
      let server = try PostgresFeeds(settings)
      #expect(feeds[0].isReady && !server.isReady)
      #expect(server.warnings.count == feeds[0].warnings.count + 1)
      let levels = server.metrics.filter { $0.name == "postgres_commit_level" }
      #expect(levels.map(\.labels) == ["{level=\"local\"}"])
    }

    @Test("an examination names what fails, and a server that is not there")
    func examination() throws {
      let findings = PostgresFeeds.examine(settings)
      #expect(findings.count > 10 && findings.allSatisfy { !$0.text.contains("\n") })
      #expect(findings.contains { $0.text.contains("fsync") })
      #expect(!findings.contains { $0.text.contains("a check failed") })
      var nowhere = PostgresSettings(url: "postgresql://127.0.0.1:1/x")
      nowhere.callTimeout = .seconds(1)
      #expect(PostgresFeeds.examine(nowhere).map(\.level) == [.failure])
    }
  }
#endif
