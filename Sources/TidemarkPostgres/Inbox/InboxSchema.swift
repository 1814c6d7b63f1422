#if PostgreSQL
  /// The views and functions by which a back end of the user's own reads and writes, and the tables
  /// behind writing. This is PostgreSQL's SQL; the feed's tables need none of it.
  ///
  /// Whoever reads or writes has rights on views and functions alone, which run with those of the
  /// tables' owner, by a search path that nobody else can write to.
  enum InboxSchema {
    /// Longest value that is taken into the inbox; longer ones are refused at once.
    private static let valueBytes = 16 << 20

    /// The id under which a database's feed has what came through the inbox; `d` is its row.
    static let replica = "substr(sha256(d.feed || 'inbox'::bytea), 1, 16)"

    static let steps = tables + reading + writing + rights

    private static let tables = [
      // Rows are found by the name, so that a writer needs not look for a database.
      """
      CREATE TABLE tidemark.tm_inbox (
        database text, id bigint GENERATED ALWAYS AS IDENTITY, key bytea NOT NULL, value bytea,
        labels bytea NOT NULL, epoch bigint NOT NULL, off bigint NOT NULL, at bigint NOT NULL,
        request text, PRIMARY KEY (database, id)) WITH (autovacuum_vacuum_scale_factor=0.01)
      """,
      """
      CREATE TABLE tidemark.tm_result (
        database text NOT NULL, request text NOT NULL, outcome text NOT NULL, position text,
        at timestamptz NOT NULL)
      """,
      "CREATE INDEX tm_result_request ON tidemark.tm_result USING hash (request)",
      "CREATE INDEX tm_result_at ON tidemark.tm_result (at)",
    ]

    // MARK: Reading

    /// The epoch in which an offset was assigned; 0 for one that is not listed any more.
    private static func epoch(_ database: String, _ offset: String) -> String {
      """
      coalesce((SELECT p.epoch FROM tidemark.tm_epoch p WHERE p.db=\(database)
        AND p.first<=\(offset) ORDER BY p.first DESC LIMIT 1), 0)
      """
    }

    private static let fixed = "SECURITY DEFINER SET search_path = pg_catalog, pg_temp"

    private static let reading = [
      """
      CREATE FUNCTION tidemark.tm_text(bytes bytea) RETURNS text LANGUAGE plpgsql IMMUTABLE STRICT
      AS $$BEGIN RETURN convert_from(bytes, 'UTF8'); EXCEPTION WHEN others THEN RETURN NULL; END$$
      """,
      """
      CREATE FUNCTION tidemark.tm_json(bytes bytea) RETURNS jsonb LANGUAGE plpgsql IMMUTABLE STRICT
      AS $$BEGIN RETURN tidemark.tm_text(bytes)::jsonb;
      EXCEPTION WHEN others THEN RETURN NULL; END$$
      """,
      """
      CREATE FUNCTION tidemark.tm_labels(bytes bytea) RETURNS text[] LANGUAGE plpgsql IMMUTABLE
      AS $$DECLARE at int := 0; labels text[] := '{}';
      BEGIN
        WHILE at < octet_length(bytes) LOOP
          labels := labels || tidemark.tm_text(substr(bytes, at + 2, get_byte(bytes, at)));
          at := at + 1 + get_byte(bytes, at);
        END LOOP;
        RETURN labels;
      END$$
      """,
      // The last entry of each key. OFFSET 0 makes the planner look keys up in the order of
      // entries: it takes a join for one of few rows, and sorts all of them for a page.
      """
      CREATE VIEW tidemark.tm_last AS
      SELECT n.name AS database, tidemark.tm_text(e.key) AS key, e.value,
        tidemark.tm_json(e.value) AS json, tidemark.tm_labels(e.labels) AS labels,
        to_timestamp(e.rtime / 65536 / 1000.0) AS updated,
        CASE WHEN e.replica=\(replica) THEN 'sql' ELSE encode(e.replica, 'hex') END AS replica,
        \(epoch("e.db", "e.off")) || '-' || e.off AS position,
        e.key AS key_bytes, e.kind=1 AS deleted, e.db, e.off
      FROM tidemark.tm_name n JOIN tidemark.tm_db d ON d.db=n.db
      JOIN tidemark.tm_entry e ON e.db=d.db AND e.kind<2
      CROSS JOIN LATERAL (SELECT FROM tidemark.tm_key k WHERE k.db=e.db AND k.hash=e.hash
        AND k.ident=coalesce(e.ident, e.key) AND k.off=e.off OFFSET 0) k
      """,
      """
      CREATE VIEW tidemark.current AS
      SELECT database, key, value, json, labels, updated, replica, position, key_bytes
      FROM tidemark.tm_last WHERE NOT deleted
      """,
      """
      CREATE FUNCTION tidemark.head(database text) RETURNS text LANGUAGE sql STABLE \(fixed) AS $$
        SELECT \(epoch("d.db", "d.head")) || '-' || d.head FROM tidemark.tm_name n
        JOIN tidemark.tm_db d ON d.db=n.db WHERE n.name=$1 $$
      """,
      // A cursor of another epoch is one of a lost end, whose offsets have been assigned again;
      // before `truncated` there were deletes that are dropped.
      """
      CREATE FUNCTION tidemark.changes(
        database text, after text DEFAULT '0-0', most int DEFAULT 1000)
      RETURNS TABLE (key text, deleted boolean, value bytea, json jsonb, labels text[],
        updated timestamptz, replica text, "position" text, key_bytes bytea)
      LANGUAGE plpgsql STABLE \(fixed) AS $$
      #variable_conflict use_column
      DECLARE
        start bigint := split_part(after, '-', 2);
        feed tidemark.tm_db := (SELECT d FROM tidemark.tm_name n JOIN tidemark.tm_db d ON d.db=n.db
          WHERE n.name=$1);
      BEGIN
        IF feed.db IS NULL THEN
          RAISE EXCEPTION 'there is no such database' USING ERRCODE='undefined_object';
        END IF;
        IF start NOT BETWEEN feed.truncated AND feed.head
          OR split_part(after, '-', 1)::bigint <> \(epoch("feed.db", "start")) THEN
          RAISE EXCEPTION 'the cursor is not in the feed any more' USING ERRCODE='no_data_found',
            HINT='Read tidemark.current with tidemark.head, and go on from there.';
        END IF;
        RETURN QUERY SELECT l.key, l.deleted, l.value, l.json, l.labels, l.updated, l.replica,
          l.position, l.key_bytes
        FROM tidemark.tm_last l WHERE l.db=feed.db AND l.off>start ORDER BY l.off LIMIT most;
      END$$
      """,
    ]

    // MARK: Writing

    private static let arguments = """
      mode text DEFAULT 'force', request text DEFAULT NULL, expected text DEFAULT NULL,
      urgent boolean DEFAULT false) RETURNS void \(fixed) LANGUAGE
      """

    private static let writing = [
      "CREATE VIEW tidemark.results AS SELECT * FROM tidemark.tm_result",
      // `off` is that of the entry which a row is conditional upon, 0 for no value, -1 for none.
      """
      CREATE FUNCTION tidemark.put_bytes(database text, key bytea, value bytea,
        labels text[] DEFAULT '{}', \(arguments) plpgsql AS $$
      DECLARE upon text[] := CASE mode WHEN 'force' THEN '{0,-1}' WHEN 'absent' THEN '{0,0}'
        WHEN 'position' THEN string_to_array(expected, '-') END;
      BEGIN
        IF upon IS NULL OR mode='position' AND upon[2]::bigint < 1 THEN
          RAISE EXCEPTION 'mode is ''force'', ''absent'', or ''position'' with what is expected'
            USING ERRCODE='invalid_parameter_value';
        ELSIF octet_length(value) > \(valueBytes)
          OR EXISTS (SELECT FROM unnest(labels) l WHERE octet_length(convert_to(l, 'UTF8')) > 255)
        THEN
          INSERT INTO tidemark.tm_result SELECT $1, $6, 'rejected: the value has more than \
      \(valueBytes) bytes, or a label more than 255', NULL, clock_timestamp() WHERE $6 IS NOT NULL;
        ELSE
          INSERT INTO tidemark.tm_inbox (database, key, value, labels, epoch, off, at, request)
          SELECT $1, $2, $3, coalesce(string_agg(
              decode(lpad(to_hex(octet_length(l)), 2, '0'), 'hex') || l, ''), ''), upon[1]::bigint,
            upon[2]::bigint, (extract(epoch FROM clock_timestamp()) * 1000)::bigint, $6
          FROM (SELECT convert_to(t, 'UTF8') AS l FROM unnest($4) t WHERE t IS NOT NULL) u;
          IF urgent THEN PERFORM pg_notify('tidemark', ':\(News.inbox)'); END IF;
        END IF;
      END$$
      """,
      """
      CREATE FUNCTION tidemark.put(database text, key text, value text,
        labels text[] DEFAULT '{}', \(arguments) sql AS $$ SELECT tidemark.put_bytes(
          $1, convert_to($2, 'UTF8'), convert_to(coalesce($3, ''), 'UTF8'), $4, $5, $6, $7, $8) $$
      """,
      """
      CREATE FUNCTION tidemark.delete(database text, key text, \(arguments) sql AS $$
        SELECT tidemark.put_bytes($1, convert_to($2, 'UTF8'), NULL, '{}', $3, $4, $5, $6) $$
      """,
    ]

    // MARK: Rights

    /// Makes a role where that is allowed, and grants it its rights where it is there.
    private static func role(_ name: String, _ rights: String...) -> [String] {
      let grants = (["USAGE ON SCHEMA tidemark"] + rights).map { "GRANT \($0) TO \(name);" }
      let other = "duplicate_object OR unique_violation OR insufficient_privilege"
      return [
        "DO $$BEGIN CREATE ROLE \(name); EXCEPTION WHEN \(other) THEN NULL; END$$",
        "DO $$BEGIN \(grants.joined()) EXCEPTION WHEN undefined_object THEN NULL; END$$",
      ]
    }

    private static let rights =
      ["REVOKE ALL ON ALL FUNCTIONS IN SCHEMA tidemark FROM PUBLIC"]
      + role(
        "tidemark_reader", "SELECT ON tidemark.current",
        "EXECUTE ON FUNCTION tidemark.head, tidemark.changes",
        "EXECUTE ON FUNCTION tidemark.tm_text, tidemark.tm_json, tidemark.tm_labels")
      + role(
        "tidemark_writer", "SELECT ON tidemark.results",
        "EXECUTE ON FUNCTION tidemark.put, tidemark.put_bytes, tidemark.delete")
  }
#endif
