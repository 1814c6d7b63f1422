#if PostgreSQL
  internal import Foundation
  internal import Tidemark
  internal import TidemarkPostgres
  internal import TidemarkSyncServer

  /// Measures databases in PostgreSQL without HTTP, beside `pgbench` over the same server: its
  /// transaction of one upserted row is the least that a push could be.
  struct PostgresRows {
    let place: Place
    let url: String
    let seconds: Double
    let keys: Int

    /// Databases of each client, which goes round them.
    private static let databases = 16
    private static let value = [UInt8](repeating: 0x76, count: 200)

    private var settings: PostgresSettings {
      var settings = PostgresSettings(url: url)
      settings.connections = 32
      return settings
    }

    /// - Throws: where there are tables, as nobody's databases may be in what is dropped later.
    func makeTables() throws {
      let schema = "SELECT count(*) FROM pg_namespace WHERE nspname='tidemark'"
      guard try Self.output("psql", url, "-Atc", schema) == "0\n" else {
        throw BenchError("there are tables of Tidemark: give the address of another database")
      }
      try PostgresFeeds.applySchema(settings)
    }

    func dropTables() {
      do {
        let drop = "SET client_min_messages=warning; DROP SCHEMA tidemark CASCADE"
        _ = try Self.output("psql", url, "-qc", drop)
      } catch { say("the schema tidemark is left: \(error)") }
    }

    func run(_ parts: Set<String>) throws {
      let feeds = try PostgresFeeds(settings)
      defer { feeds.close() }
      say("| Over PostgreSQL | a second | of pgbench's upserts |")
      say("|---|---|---|")
      if parts.contains("pushes") { try writing(feeds) }
      if parts.contains("reads") { try reading(feeds) }
      if parts.contains("upkeep") { try upkeep(feeds) }
    }

    // MARK: Writing

    private func writing(_ feeds: PostgresFeeds) throws {
      for clients in [1, 32] {
        let upserts = try upserts(clients)
        say("| pgbench, one-row upserts, \(clients) clients | \(Int(upserts)) | |")
        let pushes = try pushes(feeds, clients, of: 1)
        say(
          "| pushes of one entry, \(clients) clients | \(Int(pushes)) | "
            + String(format: "%.2f |", pushes / upserts))
      }
      say("| entries in pushes of 100, 4 clients | \(Int(try pushes(feeds, 4, of: 100) * 100)) | |")
    }

    private func pushes(
      _ feeds: PostgresFeeds, _ clients: Int, of count: Int
    ) throws -> Double {
      let run = UUID()
      // A database is a user's: its devices seldom write at the same moment.
      let handlers = try (0..<clients).map { client in
        try (0..<Self.databases).map { number in
          let handler = try feeds.handler(of: "\(run) \(client) \(number)")
          _ = try handler.hello(HelloRequest(replica: .bench(client)))
          return handler
        }
      }
      defer { for handler in handlers.joined() { try? handler.close() } }
      return try rate(clients, seconds) { client, call in
        let (round, at) = (call - 1).quotientAndRemainder(dividingBy: UInt64(Self.databases))
        try push(handlers[client][Int(at)], .bench(client), round + 1, count)
      }
    }

    private func push(
      _ handler: SyncHandler, _ replica: ReplicaID, _ number: UInt64, _ count: Int
    ) throws {
      let changes = (0..<count).map { index in
        let sequence = (number - 1) * UInt64(count) + UInt64(index) + 1
        let round = UInt64(max(1, keys / 1_000)) * 1_000
        return PushedChange(
          sequence: sequence, kind: .put, key: Array("notes/\(replica)/\(sequence % round)".utf8),
          content: SyncContent(value: Array("\(sequence) ".utf8) + Self.value),
          base: sequence > round ? .operation(sequence: sequence - round) : .absent,
          commitTime: 1_700_000_000_000 << 16)
      }
      let answer = try handler.push(
        PushRequest(
          replica: replica, number: number, batchID: BatchID(number), changes: changes))
      guard answer.mark.number == number else { throw BenchError("a push was not taken") }
    }

    private func upserts(_ clients: Int) throws -> Double {
      let directory = try place.make("pgbench")
      let script = "\(directory)/upsert.sql"
      try """
      \\set id random(1, 1000)
      INSERT INTO tidemark.bench (id, value) VALUES (:id, repeat('v', 200))
        ON CONFLICT (id) DO UPDATE SET value=excluded.value;
      """.write(toFile: script, atomically: true, encoding: .utf8)
      _ = try Self.output(
        "psql", url, "-qc",
        "CREATE TABLE tidemark.bench (id int PRIMARY KEY, value text) WITH (fillfactor=50)")
      // By count, not by time: its alarm is blocked in a process that Foundation has started.
      let text = try Self.output(
        "pgbench", "-n", "-M", "prepared", "-c", "\(clients)", "-j", "\(min(clients, 2))", "-t",
        "\(max(1, Int(seconds * 4_000)) / clients)", "-f", script, url)
      _ = try Self.output("psql", url, "-qc", "DROP TABLE tidemark.bench")
      let rate = text.split(separator: "\n").first { $0.hasPrefix("tps = ") }
      guard let rate, let number = Double(rate.split(separator: " ")[2]) else {
        throw BenchError("pgbench printed no rate: \(text)")
      }
      return number
    }

    private static func output(_ program: String, _ arguments: String...) throws -> String {
      let process = Process()
      let pipe = Pipe()
      process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
      process.arguments = [program] + arguments
      process.standardOutput = pipe
      try process.run()
      let data = pipe.fileHandleForReading.readDataToEndOfFile()
      process.waitUntilExit()
      guard process.terminationStatus == 0 else { throw BenchError("\(program) failed") }
      return String(decoding: data, as: UTF8.self)
    }

    // MARK: Reading

    private func reading(_ feeds: PostgresFeeds) throws {
      let name = "\(UUID())"
      let handler = try feeds.handler(of: name)
      let keys = max(1, keys / 1_000) * 1_000
      let writer = ReplicaID.bench(0)
      _ = try handler.hello(HelloRequest(replica: writer))
      for number in 1...UInt64(keys / 1_000) { try push(handler, writer, number, 1_000) }
      let pages = try median {
        var request = PullRequest(
          replica: .bench(1), after: .beginning,
          limits: SyncLimits(changes: 1_000, bytes: 4 << 20))
        for _ in 0..<min(keys, 100_000) / 1_000 {
          let page = try handler.pull(request)
          guard page.entries.count == 1_000 else { throw BenchError("a page lacks entries") }
          request.after = page.cursor
        }
      }
      say("| entries in pages of 1000 | \(Int(Double(min(keys, 100_000)) / pages)) | |")
      let digest = try median {
        // A new handler has no cached digest.
        let cold = try feeds.handler(of: name)
        let answer = try cold.digest(DigestRequest(replica: .bench(1)))
        guard answer.parts.first?.total.keys == UInt64(keys) else {
          throw BenchError("the digest lacks keys")
        }
      }
      say("| keys in a cold digest of \(keys) | \(Int(Double(keys) / digest)) | |")
    }

    // MARK: Upkeep

    /// Rewrites all keys again and again, with the upkeep that servers make.
    private func upkeep(_ feeds: PostgresFeeds) throws {
      let name = "\(UUID())"
      let handler = try feeds.handler(of: name)
      let writer = ReplicaID.bench(0)
      _ = try handler.hello(HelloRequest(replica: writer))
      let batches = UInt64(max(1, keys / 1_000))
      for round in 0..<10 as Range<UInt64> {
        for number in 1...batches { try push(handler, writer, round * batches + number, 1_000) }
        let start = Date()
        try handler.compact()
        let time = Date().timeIntervalSince(start)
        let rows = try Self.output(
          "psql", url, "-Atc",
          """
          SELECT count(*) || ' rows, tables of ' || pg_size_pretty(pg_total_relation_size(
            'tidemark.tm_entry') + pg_total_relation_size('tidemark.tm_key'))
          FROM tidemark.tm_entry JOIN tidemark.tm_name USING (db) WHERE name='\(name)'
          """)
        let keys = batches * 1_000
        say(
          "| upkeep after writing \(keys) keys \(round + 1) times: \(rows.dropLast()) | "
            + "\(Int(Double(keys) / max(time, 0.001))) | |")
      }
    }

    /// The median of five times, in seconds.
    private func median(_ body: () throws -> Void) throws -> Double {
      try (0..<5).map { _ in
        let start = Date()
        try body()
        return Date().timeIntervalSince(start)
      }.sorted()[2]
    }
  }
#endif
