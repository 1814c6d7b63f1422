#if PostgreSQL
  import Foundation
  import Testing
  import Tidemark
  import TidemarkEngine
  import TidemarkTestKit

  @testable import TidemarkPostgres
  @testable import TidemarkSyncProtocol
  @testable import TidemarkSyncServer

  /// Each test has a database of its own, and two servers take the rows of the inbox. Tests run
  /// serially: CREATE TRIGGER in one waits for the transaction that another one keeps open, and
  /// behind its lock no server could take the rows which that one waits for.
  @Suite(
    "SQL for a back end", .enabled(if: PostgresTrial.url != nil), .serialized,
    .timeLimit(.minutes(20)))
  struct InboxTests {
    private let name = "test \(UUID())"
    private let handlers: [SyncHandler]
    private let settings: PostgresSettings
    private let pool: Pool

    init() throws {
      var settings = PostgresSettings(url: try #require(PostgresTrial.url))
      // Nothing ends a transaction that a test keeps open.
      settings.isPooled = true
      self.settings = settings
      pool = Pool(settings)
      let name = name
      handlers = try PostgresTrial.servers.get().map { try $0.handler(of: name) }
    }

    // MARK: Help

    /// The first column, as text, of what a statement returns; `DB` in it is the database's name.
    private func sql(_ text: String, over known: Connection? = nil) throws -> [String] {
      let call = Statement(text.replacing("DB", with: "'\(name)'"))()
      let rows = try known?.read([call])[0] ?? pool.read([call])[0]
      return (0..<rows.count).map {
        var row = rows[$0]
        return row.optionalBytes().map { String(decoding: $0, as: UTF8.self) } ?? "null"
      }
    }

    /// The SQLSTATE with which a statement fails.
    private func refusal(_ text: String, over known: Connection? = nil) throws -> String {
      do { return try sql(text, over: known ?? Connection(settings)).joined() } catch let failure
        as Failure
      {
        return failure.state
      }
    }

    /// Waits until servers have taken all rows that are committed.
    private func taken() async throws {
      while try !sql("SELECT '' FROM tidemark.tm_inbox WHERE database=DB LIMIT 1").isEmpty {
        try await Task.sleep(for: .milliseconds(10))
      }
    }

    private func results() throws -> [String] {
      try sql(
        """
        SELECT request || ' ' || outcome FROM tidemark.results
        WHERE database=DB ORDER BY length(request), request
        """)
    }

    private func position(of key: String) throws -> String {
      try sql("SELECT position FROM tidemark.current WHERE database=DB AND key='\(key)'").joined()
    }

    @discardableResult
    private func push(
      _ device: inout Device, _ changes: PushedChange..., to server: Int = 0
    ) throws -> [String] {
      if device.number == 0 { _ = try handlers[0].hello(HelloRequest(replica: device.id)) }
      device.number += 1
      return try handlers[server].push(device.batch(changes)).mark.verdicts.map(\.name)
    }

    // MARK: Writing

    @Test("10,000 rows of a transaction count once each and in order, beside a device's pushes")
    func manyRows() async throws {
      // A batch that is taken twice changes each of its keys twice again.
      _ = try sql(
        """
        SELECT tidemark.put(DB, 'k' || i % 500, i::text, request => 'r' || i)
        FROM generate_series(1, 10000) i
        """)
      var a = Device(1)
      for number in 1...30 { #expect(try push(&a, a.put("own \(number)", "")) == ["applied"]) }
      try await taken()
      let entries = try sql(
        """
        SELECT convert_from(e.value, 'UTF8') FROM tidemark.tm_entry e
        JOIN tidemark.tm_name n ON n.db=e.db WHERE n.name=DB AND e.vlen>0 ORDER BY e.off
        """)
      #expect(entries == (1...10_000).map { String($0) })
      let current = try sql(
        """
        SELECT 'r' || convert_from(value, 'UTF8') || ' ' || position FROM tidemark.current
        WHERE database=DB AND replica='sql'
        """)
      let applied = try sql(
        """
        SELECT request || ' ' || position FROM tidemark.results
        WHERE database=DB AND outcome='applied'
        """)
      #expect(current.count == 500 && Set(current).isSubset(of: applied))
      #expect(try results().count == 10_000)
    }

    @Test("only a row with `urgent => true` notifies the servers at commit")
    func urgentRow() async throws {
      let listener = try Connection(settings)
      _ = try listener.read([Statement("LISTEN tidemark")()])
      let told = {
        try listener.notifications(for: .milliseconds(20)).count { $0 == ":\(News.inbox)" }
      }
      _ = try sql("SELECT tidemark.put(DB, 'k', '1')")
      try await taken()
      #expect(try told() == 0)
      _ = try sql("SELECT tidemark.put(DB, 'k', '2', urgent => true)")
      _ = try sql("SELECT tidemark.delete(DB, 'l', urgent => true)")
      var count = 0
      while count < 2 { count += try told() }
      try await taken()
      #expect(try sql("SELECT value FROM tidemark.current WHERE database=DB") == ["2"])
    }

    @Test("a change is not appended where its row cannot be deleted")
    func oneTransaction() async throws {
      let trap = "trap_" + UUID().uuidString.replacing("-", with: "_").lowercased()
      _ = try sql("CREATE SEQUENCE \(trap)")
      _ = try sql(
        """
        CREATE FUNCTION \(trap)() RETURNS trigger LANGUAGE plpgsql AS
        $$BEGIN PERFORM nextval('\(trap)'); RAISE 'not now'; END$$
        """)
      _ = try sql(
        """
        CREATE TRIGGER \(trap) BEFORE DELETE ON tidemark.tm_inbox FOR EACH ROW
        WHEN (OLD.database=DB) EXECUTE FUNCTION \(trap)()
        """)
      _ = try sql("SELECT tidemark.put(DB, 'k', '1')")
      while try sql("SELECT is_called::text FROM \(trap)") == ["false"] {
        try await Task.sleep(for: .milliseconds(10))
      }
      let appended = "SELECT key FROM tidemark.changes(DB)"
      #expect(try sql(appended) == [])
      _ = try sql("DROP FUNCTION \(trap) CASCADE")
      _ = try sql("DROP SEQUENCE \(trap)")
      try await taken()
      #expect(try sql(appended) == ["k"])
    }

    @Test("a row that is committed late counts, and wins over a later change where it is to")
    func lateCommit() async throws {
      try handlers[0].setPolicy(.lastWriterWins, forKeysWithPrefix: "")
      let late = try Connection(settings)
      _ = try sql("BEGIN", over: late)
      _ = try sql("SELECT tidemark.put(DB, 'k', 'late', request => '1')", over: late)
      _ = try sql(
        "SELECT tidemark.put(DB, 'l', 'late', mode => 'absent', request => '2')", over: late)
      var a = Device(1)
      #expect(
        try push(&a, a.put("k", "device", at: 1 << 30), a.put("l", "device", at: 1 << 30))
          == ["applied", "applied"])
      _ = try sql("SELECT tidemark.put(DB, 'm', 'early', request => '3')")
      try await taken()
      #expect(try results() == ["3 applied"])
      _ = try sql("COMMIT", over: late)
      try await taken()
      #expect(try results() == ["1 applied", "2 conflict", "3 applied"])
      let values = try sql(
        "SELECT convert_from(value, 'UTF8') FROM tidemark.current WHERE database=DB ORDER BY key")
      #expect(values == ["late", "device", "early"])
    }

    @Test("a row applies upon whatever is there, upon nothing, or upon the entry that it names")
    func modes() async throws {
      var a = Device(1)
      try push(&a, a.put("a", "device"))
      let first = try position(of: "a")
      for (index, call) in [
        "put(DB, 'a', '1', mode => 'absent'", "put(DB, 'b', '1', mode => 'absent'",
        "put(DB, 'b', '2', mode => 'absent'",
        "put(DB, 'a', '2', mode => 'position', expected => '\(first)'",
        "put(DB, 'a', '3', mode => 'position', expected => '\(first)'", "put(DB, 'a', '2'",
        "delete(DB, 'b'", "put_bytes(DB, 'b', NULL", "put(DB, 'b', '4', mode => 'absent'",
        "put(DB, 'b', '5'", "put(DB, 'b', '6'",
      ].enumerated() {
        _ = try sql("SELECT tidemark.\(call), request => '\(index + 1)')")
      }
      try await taken()
      #expect(
        try results() == [
          "1 conflict", "2 applied", "3 conflict", "4 applied", "5 conflict", "6 unchanged",
          "7 applied", "8 unchanged", "9 applied", "10 applied", "11 applied",
        ])
      let refused = try sql(
        "SELECT position FROM tidemark.results WHERE database=DB AND request='1'")
      #expect(refused == [first])
      #expect(
        try sql("SELECT convert_from(value, 'UTF8') FROM tidemark.current WHERE database=DB")
          .sorted() == ["2", "6"])
      #expect(try refusal("SELECT tidemark.put(DB, 'a', '', mode => 'any')") == "22023")
      #expect(try refusal("SELECT tidemark.put(DB, 'a', '', mode => 'position')") == "22023")
    }

    @Test("a row that cannot apply gets a verdict, and holds up none behind it")
    func badRows() async throws {
      let long = "put_bytes(DB, 'big', convert_to(repeat('v', \((16 << 20) + 1)), 'UTF8')"
      for (index, call) in [
        "put(DB, '', 'v'", "put(DB, repeat('k', 65536), 'v'", "put(DB || ' gone', 'k', 'v'",
        #"put(DB, 'l', 'v', '{""}'"#, "put(DB, 'l', 'v', ARRAY[repeat('l', 256)]", long,
        "put(DB, 'good', 'v', '{b,a,b}'",
      ].enumerated() {
        _ = try sql("SELECT tidemark.\(call), request => DB || ' \(index + 1)')")
      }
      try await taken()
      func outcomes() throws -> [String] {
        try sql(
          """
          SELECT split_part(outcome, ':', 1) FROM tidemark.results
          WHERE starts_with(request, DB) ORDER BY request
          """)
      }
      while try outcomes().count < 7 { try await Task.sleep(for: .milliseconds(10)) }
      #expect(try outcomes() == Array(repeating: "rejected", count: 6) + ["applied"])
      let labels = try sql(
        "SELECT key || labels::text FROM tidemark.current WHERE database=DB")
      #expect(labels == ["good{a,b}"])
    }

    // MARK: Reading

    @Test("a reader of changes misses none while four devices and the inbox write by two servers")
    func changes() async throws {
      let (name, handlers) = (name, handlers)
      let last = 50
      try await withThrowingTaskGroup(of: Void.self) { group in
        for number in 1...4 as ClosedRange<UInt8> {
          group.addTask {
            var device = Device(number)
            _ = try handlers[0].hello(HelloRequest(replica: device.id))
            for round in 1...last {
              device.number += 1
              let put = device.put("\(number)/\(round % 7)", "\(round)")
              _ = try handlers[round % 2].push(device.batch([put]))
            }
          }
        }
        group.addTask { [self] in
          for round in 1...last {
            _ = try sql("SELECT tidemark.put(DB, '5/\(round % 7)', '\(round)')")
          }
        }
        var (held, cursor, offsets): ([Substring: Substring], Substring, [Int]) = ([:], "0-0", [])
        while held.count < 35 || held.values.count(where: { Int($0) == last }) < 5 {
          let page = try sql(
            """
            SELECT key || ' ' || convert_from(value, 'UTF8') || ' ' || position
            FROM tidemark.changes(DB, '\(cursor)', 7)
            """)
          for fields in page.map({ $0.split(separator: " ") }) {
            held[fields[0]] = fields[1]
            cursor = fields[2]
            offsets.append(try #require(Int(cursor.split(separator: "-")[1])))
          }
          if page.isEmpty { try await Task.sleep(for: .milliseconds(1)) }
        }
        try await group.waitForAll()
        #expect(offsets == Array(Set(offsets)).sorted())
        let current = try sql(
          "SELECT key || ' ' || convert_from(value, 'UTF8') FROM tidemark.current WHERE database=DB"
        )
        #expect(current.sorted() == held.map { "\($0) \($1)" }.sorted(), "\(name)")
      }
    }

    @Test("a cursor that is not in the feed, or lies before dropped deletes, is refused")
    func cursors() throws {
      // No lease keeps a delete.
      let handler = try PostgresTrial.servers.get()[0].handler(
        of: name, options: SyncHandler.Options(lease: .seconds(0)))
      var a = Device(1)
      func push(_ changes: PushedChange...) throws {
        a.number += 1
        _ = try handler.push(a.batch(changes))
      }
      try push(a.put("k", "1"), a.put("l", "1"))
      let first = try position(of: "k")
      #expect(try sql("SELECT tidemark.head(DB)") == [first.replacing("-1", with: "-3")])
      let epoch = try #require(first.split(separator: "-").first)
      for cursor in ["\(epoch)-4", "1-2", "0-1"] {
        #expect(try refusal("SELECT key FROM tidemark.changes(DB, '\(cursor)')") == "P0002")
      }
      #expect(try refusal("SELECT key FROM tidemark.changes('no ' || DB)") == "42704")
      let changes = "SELECT key || deleted FROM tidemark.changes(DB, '\(first)')"
      try push(a.delete("k", base: .operation(sequence: 1)))
      #expect(try sql(changes) == ["lfalse", "ktrue"])
      try handler.compact()
      #expect(try refusal(changes) == "P0002")
    }

    @Test("the view shows what a device wrote, without deletes and changes that lost")
    func view() throws {
      try handlers[0].setPolicy(.lastWriterWins, forKeysWithPrefix: "")
      var (a, b) = (Device(1), Device(2))
      try push(
        &a, a.put("note", #"{"text": "milk"}"#, labels: ["x", "y"], at: 9), a.put("plain", "milk"),
        a.put("gone", ""), a.delete("gone", base: .operation(sequence: 3)))
      #expect(try push(&b, b.put("note", "older", at: 1)) == ["lost"])
      let rows = try sql(
        """
        SELECT concat_ws(' ', key, json->>'text', labels, replica,
          abs(extract(epoch FROM clock_timestamp() - updated)) < 3600)
        FROM tidemark.current WHERE database=DB ORDER BY key
        """)
      #expect(rows == ["note milk {x,y} \(a.id) t", "plain {} \(a.id) t"])
    }

    // MARK: Rights

    @Test("the two roles reach views and functions alone, and everybody else nothing")
    func rights() async throws {
      func relations(_ role: String) throws -> [String] {
        try sql(
          """
          SELECT relname::text FROM pg_class WHERE relnamespace='tidemark'::regnamespace
            AND relkind IN ('r', 'v') AND has_table_privilege('\(role)', oid,
              'SELECT, INSERT, UPDATE, DELETE, TRUNCATE, REFERENCES, TRIGGER')
          """)
      }
      #expect(try relations("tidemark_reader") == ["current"])
      #expect(try relations("tidemark_writer") == ["results"])
      #expect(try relations("public") == [])
      let functions = try sql(
        """
        SELECT proname::text FROM pg_proc WHERE pronamespace='tidemark'::regnamespace
          AND has_function_privilege('public', oid, 'EXECUTE')
        """)
      #expect(functions == [])
      let connection = try Connection(settings)
      _ = try sql("SET ROLE tidemark_writer", over: connection)
      _ = try sql("SELECT tidemark.put(DB, 'k', '{\"n\": 1}', '{l}')", over: connection)
      #expect(try refusal("SELECT '' FROM tidemark.current", over: connection) == "42501")
      try await taken()
      _ = try sql("SET ROLE tidemark_reader", over: connection)
      let read = try sql(
        """
        SELECT concat(c.key, c.json, c.labels, h.key) FROM tidemark.current c,
          tidemark.changes(DB) h WHERE c.database=DB AND tidemark.head(DB) <> ''
        """, over: connection)
      #expect(read == [#"k{"n": 1}{l}k"#])
      #expect(try refusal("SELECT tidemark.put(DB, 'k', '')", over: connection) == "42501")
    }

    // MARK: The example

    /// The Python that has a client for PostgreSQL: often the system's, not the first one.
    private static func interpreter() async throws -> String? {
      let looks = "import importlib.util as u; exit(not (u.find_spec('psycopg') or "
      for name in ["python3", "/usr/bin/python3"] {
        if try await run(name, "-c", looks + "u.find_spec('psycopg2')))") == 0 { return name }
      }
      return nil
    }

    private static func run(_ arguments: String...) async throws -> Int32 {
      try await withCheckedThrowingContinuation { continuation in
        let process = Process()
        process.executableURL = URL(filePath: "/usr/bin/env")
        process.arguments = arguments
        process.environment = ProcessInfo.processInfo.environment.merging([
          "TIDEMARK_POSTGRES": PostgresTrial.url ?? "", "PYTHONDONTWRITEBYTECODE": "1",
        ]) { $1 }
        process.terminationHandler = { continuation.resume(returning: $0.terminationStatus) }
        do { try process.run() } catch { continuation.resume(throwing: error) }
      }
    }

    @Test(
      "the example of a back end adds a note and finds it",
      .enabled("Python has no psycopg here") { try await interpreter() != nil })
    func example() async throws {
      let root = URL(filePath: #filePath).deletingLastPathComponent().appending(path: "../../..")
      let check = root.appending(path: "Tools/Examples/backend/check").standardized.path
      let python = try #require(try await Self.interpreter())
      #expect(try await Self.run(python, check, name) == 0)
    }
  }
#endif
