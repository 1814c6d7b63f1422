#if PostgreSQL
  internal import Tidemark

  /// One result of ``PostgresFeeds/examine(_:)``: a property of the PostgreSQL installation, and
  /// how grave it is.
  public struct Finding: Sendable, Codable {
    /// How grave a finding is: `ok` needs nothing, a `warning` should be mended, and with a
    /// `failure` the server cannot work safely.
    public enum Level: String, Sendable, Codable { case ok, warning, failure }

    /// Whether the finding is fine, a warning or a failure.
    public var level: Level
    /// One line for people that tells the finding and the remedy.
    public var text: String
  }

  extension PostgresFeeds {
    /// A statement that returns one number, and what that says.
    private struct Check {
      var sql: String
      var judge: @Sendable (Int64) -> Finding
    }

    private static func finding(_ level: Finding.Level, _ text: String) -> Finding {
      Finding(level: level, text: text)
    }

    /// A check of a number that should not exceed a bound.
    private static func most(
      _ bound: Int64, _ sql: String, _ what: String, _ advice: String,
      _ level: Finding.Level = .warning
    ) -> Check {
      Check(sql: sql) { number in
        number <= bound
          ? finding(.ok, "\(what): \(number)")
          : finding(level, "\(what): \(number), more than \(bound): \(advice)")
      }
    }

    private static func off(
      _ setting: String, _ level: Finding.Level, _ advice: String
    ) -> Check {
      Check(sql: "SELECT CASE WHEN current_setting('\(setting)')='off' THEN 1 ELSE 0 END::bigint") {
        $0 == 0 ? finding(.ok, "\(setting) is on") : finding(level, "\(setting) is off: \(advice)")
      }
    }

    /// What may lose what was acknowledged. A server warns of it when it starts.
    private static let durability = [
      off("fsync", .failure, "a crash loses what was acknowledged; set it to on"),
      off("full_page_writes", .failure, "a crash can damage pages; set it to on"),
      off(
        "synchronous_commit", .failure,
        "a crash loses what was acknowledged; set it to on for this role and database"),
    ]

    private static let checks =
      [
        Check(sql: "SELECT current_setting('server_version_num')::bigint") {
          $0 >= 130_000
            ? finding(.ok, "PostgreSQL \($0 / 10_000)")
            : finding(
              .failure, "PostgreSQL \($0 / 10_000) is too old: 13 is the oldest that serves")
        },
        Check(
          sql: """
            SELECT count(*) FROM unnest(ARRAY['SELECT', 'INSERT', 'UPDATE', 'DELETE']) r(r)
            CROSS JOIN pg_class c JOIN pg_namespace n ON n.oid=c.relnamespace
            WHERE n.nspname='tidemark' AND c.relkind='r' AND NOT has_table_privilege(c.oid, r)
            """
        ) {
          $0 == 0
            ? finding(.ok, "the role may read and write the tables")
            : finding(
              .failure,
              "the role lacks \($0) rights on the tables: GRANT SELECT, INSERT, UPDATE, DELETE ON "
                + "ALL TABLES IN SCHEMA tidemark")
        },
      ] + durability + [
        Check(
          sql: """
            SELECT \(News.commitLevel) * CASE WHEN pg_has_role('pg_read_all_stats', 'USAGE')
              AND NOT EXISTS (SELECT 1 FROM pg_stat_replication WHERE sync_state<>'async')
              THEN 2 ELSE 1 END
            """
        ) {
          switch $0 {
          case 1: finding(.ok, "a commit waits for a synchronous standby")
          case 2:
            finding(
              .failure,
              "commits wait for a synchronous standby, and none is connected: start it, "
                + "or change synchronous_standby_names")
          default:
            finding(
              .warning,
              "no synchronous standby: a failover may lose what was acknowledged last, until its "
                + "devices send it again")
          }
        },
        most(
          80,
          """
          SELECT 100 * (SELECT count(*) FROM pg_stat_activity WHERE backend_type='client backend')
            / current_setting('max_connections')::bigint
          """, "percent of PostgreSQL's connections in use",
          "raise max_connections, lower --postgres-connections, or use a pooler"),
        most(
          300,
          """
          SELECT coalesce(extract(epoch FROM max(now() - xact_start)), 0)::bigint
          FROM pg_stat_activity WHERE backend_type='client backend'
          """, "seconds that the oldest transaction runs",
          "vacuum deletes nothing that it may see; end it"),
        most(
          1_000_000_000, "SELECT max(age(datfrozenxid))::bigint FROM pg_database",
          "transactions since the oldest freeze", "let vacuum freeze, before PostgreSQL stops",
          .failure),
        most(
          100,
          """
          SELECT coalesce(max(100 * n_dead_tup / greatest(n_live_tup, 10000)), 0)::bigint
          FROM pg_stat_user_tables WHERE schemaname='tidemark'
          """, "dead rows for 100 live ones in the worst table", "is autovacuum on?"),
        most(
          0, "SELECT count(*) FROM tidemark.tm_db WHERE quota > 0 AND bytes > quota",
          "databases beyond their quota", "compact them, or raise it"),
        most(
          0, "SELECT count(*) FROM tidemark.tm_db WHERE state=1",
          "deleted databases whose rows are not gone",
          "the server that deleted them has ended; the next deletion goes on with them"),
      ]

    /// What of PostgreSQL's settings may lose what was acknowledged.
    func losses() -> [String] {
      Self.durability.compactMap { Self.run($0, pool) }.filter { $0.level != .ok }.map(\.text)
    }

    private static func run(_ check: Check, _ pool: Pool) -> Finding? {
      do throws(TidemarkError) {
        guard var row = try pool.read([Statement(check.sql)()])[0].first, !row.isNull else {
          return nil
        }
        return check.judge(try row.bigint())
      } catch { return finding(.warning, "a check failed: \(error.message)") }
    }

    /// Examines PostgreSQL, its settings and the server's tables, and changes nothing.
    /// - Parameter settings: how to reach PostgreSQL.
    /// - Returns: the findings, good ones included.
    public static func examine(_ settings: PostgresSettings) -> [Finding] {
      var settings = settings
      settings.connections = 1
      let pool = Pool(settings)
      defer { pool.close() }
      do throws(TidemarkError) {
        try Schema.check(pool)
      } catch { return [finding(.failure, error.message)] }
      var findings = [finding(.ok, "the primary answers, with tables of schema \(Schema.version)")]
      findings += checks.compactMap { run($0, pool) }
      if News.canListen(settings) {
        findings.append(finding(.ok, "notifications come"))
      } else {
        findings.append(
          finding(
            .warning,
            "no notifications: other servers' devices wait up to a second; give --postgres-direct"))
      }
      return findings
    }
  }
#endif
