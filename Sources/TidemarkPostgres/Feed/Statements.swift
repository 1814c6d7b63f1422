#if PostgreSQL
  /// The statements of a feed, in the SQL that PostgreSQL's relatives take, too: no sequences, no
  /// triggers, no advisory locks, no arrays of arrays. `d` is always the row of the database.
  enum Statements {
    /// The life of the primary: when its process was started, and which table this is. It differs
    /// after a failover, a restart, and a restore of any kind. Every transaction asks anew: a
    /// pooler may have moved the connection to another primary.
    static let incarnation =
      "(extract(epoch FROM pg_postmaster_start_time())::text || '/' || d.tableoid::text)"
    static let milliseconds = "(extract(epoch FROM clock_timestamp()) * 1000)::bigint"

    /// The columns of ``FeedHead``, see `FeedHead.init(_:)`.
    private static func head(_ e: String = "e") -> String {
      """
      \(e).off, \(e).kind, \(e).key, \(e).labels, \(e).replica, \(e).seq, \(e).wtime, \(e).rtime,
        \(e).prev, \(e).attrs, \(e).vlen
      """
    }

    // MARK: Looking

    /// The planner does not join across a subselect with `OFFSET 0`, so each lookup uses all
    /// columns of its index. Without it a plan that was made while a database was small compares
    /// each asked row with all rows of the database.
    static let states = Statement(
      """
      SELECT q.i, k.low, k.high, e.*
      FROM unnest($2::bigint[], $3::bigint[], $4::bytea[]) q(i, hash, ident)
      CROSS JOIN LATERAL (SELECT k.off, k.low, k.high FROM tidemark.tm_key k
        WHERE k.db=$1::bigint AND k.hash=q.hash AND k.ident=q.ident OFFSET 0) k
      CROSS JOIN LATERAL (SELECT \(head()) FROM tidemark.tm_entry e
        WHERE e.db=$1::bigint AND e.off=k.off OFFSET 0) e
      """)

    /// The database with the mark and the lease of a replica, where one asks. Comes last, so that
    /// all that was read before is within the head.
    static let database = Statement(
      """
      SELECT d.head, d.epoch, \(incarnation), d.policies, d.truncated, d.history_from,
        \(milliseconds), d.state, CASE WHEN d.quota>0 THEN greatest(d.quota-d.bytes, 0) END,
        m.off, m.record, l.expires, l.reads_until, l.epoch, l.off, l.cleared
      FROM tidemark.tm_db d
      LEFT JOIN tidemark.tm_mark m ON m.db=d.db AND m.replica=$2::bytea
      LEFT JOIN tidemark.tm_lease l ON l.db=d.db AND l.replica=$2::bytea
      WHERE d.db=$1::bigint
      """)

    static let epochs = Statement(
      """
      SELECT first, epoch FROM tidemark.tm_epoch WHERE db=$1::bigint
      ORDER BY first DESC LIMIT $2::bigint
      """)

    static let policies = Statement(
      "SELECT prefix, record FROM tidemark.tm_policy WHERE db=$1::bigint")

    // MARK: Appending

    /// Appends a batch, or divides by zero where something differs from what it was judged by:
    /// primary, epoch, policies, deletes that are kept, room for puts, the last entry of a key, the
    /// replica's mark.
    ///
    /// `d` takes the row's lock, so that appends come one after the other, and assigns offsets:
    /// they become visible in their order. All else is compared and changed row by row as it is
    /// then, not as the statement found it when it began: by `ON CONFLICT`.
    ///
    /// `i` counts from 1; `after` is the index of the entry of the batch that had the key before.
    /// A key's row in `tm_key` refers to the last entry that the batch has for the key.
    static let append = Statement(
      """
      WITH d AS (
        UPDATE tidemark.tm_db d SET head = head + $2::bigint,
          last_time = greatest(last_time + 1, \(milliseconds) * 65536),
          bytes = bytes + $3::bigint, garbage = garbage + $4::bigint
        WHERE db=$1::bigint AND epoch=$6::bigint AND incarnation=\(incarnation)
          AND policies=$7::bigint AND truncated=$34::bigint AND state=0
          AND (quota=0 OR $8::bigint=0 OR bytes + $8::bigint <= quota)
        RETURNING db, head, last_time),
      e AS (
        INSERT INTO tidemark.tm_entry (db, off, kind, hash, key, ident, labels, replica, seq,
          wtime, rtime, prev, size, attrs, vlen, value)
        SELECT d.db, d.head - $2::bigint + u.i, u.kind, u.hash, u.key, u.ident, u.labels,
          $5::bytea, u.seq, u.wtime, d.last_time,
          CASE WHEN u.after > 0 THEN d.head - $2::bigint + u.after ELSE u.prev END,
          u.size, u.attrs, coalesce(octet_length(u.value), 0), u.value
        FROM d CROSS JOIN unnest($13::bigint[], $14::bigint[], $15::bigint[], $16::bytea[],
          $17::bytea[], $18::bytea[], $19::bigint[], $20::bigint[], $21::bigint[], $22::bigint[],
          $23::bigint[], $24::bytea[], $25::bytea[])
          u(i, kind, hash, key, ident, labels, seq, wtime, after, prev, size, attrs, value)),
      k AS (
        INSERT INTO tidemark.tm_key AS k (db, hash, ident, off, prev, deleted, labels, low, high)
        SELECT d.db, u.hash, u.ident, d.head - $2::bigint + u.i, u.prev, u.deleted, u.labels,
          u.low, u.high
        FROM d CROSS JOIN unnest($26::bigint[], $27::bigint[], $28::bytea[], $29::bigint[],
          $30::boolean[], $31::bytea[], $32::bigint[], $33::bigint[])
          u(i, hash, ident, prev, deleted, labels, low, high)
        \(keyChange) WHERE k.off=excluded.prev RETURNING 1),
      m AS (
        INSERT INTO tidemark.tm_mark AS m (db, replica, number, batch, off, record)
        SELECT d.db, $5::bytea, $9::bigint, $10::bigint, d.head, $11::bytea FROM d
        ON CONFLICT (db, replica) DO UPDATE SET number=excluded.number, batch=excluded.batch,
          off=excluded.off, record=excluded.record
        WHERE m.off=$12::bigint RETURNING 1)
      SELECT coalesce(max(d.head), 0) / (CASE WHEN (SELECT count(*) FROM m) = 1
        AND (SELECT count(*) FROM k) = cardinality($26::bigint[]) THEN 1 ELSE 0 END)
      FROM d
      """)

    static let keyChange = """
      ON CONFLICT (db, hash, ident) DO UPDATE SET off=excluded.off, prev=excluded.prev,
        deleted=excluded.deleted, labels=excluded.labels, low=excluded.low, high=excluded.high
      """

    // MARK: Epochs

    /// Begins an epoch where this is another life of the primary than that of the newest one.
    static let beginEpoch = Statement(
      """
      UPDATE tidemark.tm_db d SET epoch=$2::bigint, incarnation=\(incarnation)
      WHERE db=$1::bigint AND incarnation<>\(incarnation)
      """)

    /// An epoch in which nothing was appended gives its place up.
    static let noteEpoch = Statement(
      """
      INSERT INTO tidemark.tm_epoch (db, first, epoch)
      SELECT d.db, d.head + 1, d.epoch FROM tidemark.tm_db d
      WHERE d.db=$1::bigint AND d.epoch=$2::bigint
      ON CONFLICT (db, first) DO UPDATE SET epoch=excluded.epoch
      """)

    // MARK: Reading

    /// Puts and deletes, with the first small values that still count, and the last entry of the
    /// same key if that is a later one of the range: a key is looked up only where another entry
    /// has superseded this one.
    static let page = Statement(
      """
      SELECT \(head()), CASE WHEN e.kind=0 AND l.off IS NULL AND e.vlen<=$6::bigint
          AND sum(e.vlen) OVER (ORDER BY e.off) <= $5::bigint THEN e.value END,
        \(head("l"))
      FROM (SELECT * FROM tidemark.tm_entry
        WHERE db=$1::bigint AND off>$2::bigint AND off<=$3::bigint AND kind<2
        ORDER BY off LIMIT $4::bigint) e
      LEFT JOIN LATERAL (SELECT n.hash, coalesce(n.ident, n.key) AS ident
        FROM tidemark.tm_entry n WHERE n.db=$1::bigint AND n.prev=e.off AND n.prev>0 OFFSET 0) n
        ON true
      LEFT JOIN LATERAL (SELECT k.off FROM tidemark.tm_key k WHERE k.db=$1::bigint
        AND k.hash=n.hash AND k.ident=n.ident AND k.off<=$3::bigint OFFSET 0) k ON true
      LEFT JOIN LATERAL (SELECT * FROM tidemark.tm_entry l WHERE l.db=$1::bigint AND l.off=k.off
        OFFSET 0) l ON true
      ORDER BY e.off
      """)

    static let heads = Statement(
      """
      SELECT e.* FROM unnest($2::bigint[]) q(off)
      CROSS JOIN LATERAL (SELECT \(head()) FROM tidemark.tm_entry e
        WHERE e.db=$1::bigint AND e.off=q.off AND e.kind<2 OFFSET 0) e
      """)

    static let values = Statement(
      """
      SELECT e.off, e.value FROM unnest($2::bigint[]) q(off)
      CROSS JOIN LATERAL (SELECT e.off, e.value FROM tidemark.tm_entry e
        WHERE e.db=$1::bigint AND e.off=q.off AND e.kind=0 OFFSET 0) e
      """)

    // MARK: Digests

    /// Begins a scan of `tm_key` in one snapshot. Without index scans PostgreSQL makes a bitmap
    /// scan, which reads each page of the table once; in the order of hashes every key would read
    /// a page at random.
    static let beginScan = [
      "BEGIN ISOLATION LEVEL REPEATABLE READ, READ ONLY", "SET LOCAL enable_indexscan=off",
      "SET LOCAL enable_seqscan=off",
    ].map { Statement($0) }
    static let endScan = Statement("COMMIT")
    static let headOnly = Statement(
      "SELECT head FROM tidemark.tm_db WHERE db=$1::bigint")

    /// The keys of a range of hashes, in no order. A long key is not in its row, see
    /// ``KeyColumns``.
    static let fingerprints = Statement(
      """
      DECLARE keys NO SCROLL CURSOR FOR
      SELECT CASE WHEN octet_length(k.ident) <= 511 THEN k.ident ELSE (SELECT e.key
          FROM tidemark.tm_entry e WHERE e.db=k.db AND e.off=k.off) END,
        k.low, k.high, k.off, k.labels
      FROM tidemark.tm_key k
      WHERE k.db=$1::bigint AND k.hash>=$2::bigint AND k.hash<=$3::bigint AND NOT k.deleted
      """)
    static let nextKeys = Statement("FETCH 8192 FROM keys")
    static let closeKeys = Statement("CLOSE ALL")

    // MARK: Leases and policies

    private static let lease5 = "expires, reads_until, epoch, off, cleared"
    private static let known5 = "($3::bigint, $4::bigint, $5::bigint, $6::bigint, $7::bigint)"

    /// Adds a lease where none was known, or changes the known one if it is still there. Where
    /// there are too many the one goes that is not used, or ends first: its replica has to compare.
    static let setLease = Statement(
      """
      WITH gone AS (
        DELETE FROM tidemark.tm_lease WHERE $3::bigint IS NULL AND db=$1::bigint
          AND (expires<=\(milliseconds)
            OR replica = (SELECT replica FROM tidemark.tm_lease WHERE db=$1::bigint
              AND (SELECT count(*) FROM tidemark.tm_lease WHERE db=$1::bigint) >= $13::bigint
              ORDER BY off > 0, expires LIMIT 1)))
      INSERT INTO tidemark.tm_lease AS l (db, replica, \(lease5))
      SELECT $1::bigint, $2::bytea, $8::bigint, $9::bigint, $10::bigint, $11::bigint, $12::bigint
      WHERE $3::bigint IS NULL OR EXISTS (SELECT 1 FROM tidemark.tm_lease
        WHERE db=$1::bigint AND replica=$2::bytea)
      ON CONFLICT (db, replica) DO UPDATE SET (\(lease5)) = ($8, $9, $10, $11, $12)
      WHERE (l.expires, l.reads_until, l.epoch, l.off, l.cleared) = \(known5)
      """)

    static let removeLease = Statement(
      """
      DELETE FROM tidemark.tm_lease WHERE db=$1::bigint AND replica=$2::bytea
        AND (\(lease5)) = \(known5)
      """)

    static let changePolicies = Statement(
      "UPDATE tidemark.tm_db SET policies=policies+1 WHERE db=$1::bigint RETURNING head")

    static let setPolicy = Statement(
      """
      INSERT INTO tidemark.tm_policy (db, prefix, record)
      VALUES ($1::bigint, $2::bytea, $3::bytea)
      ON CONFLICT (db, prefix) DO UPDATE SET record=excluded.record
      """)

    static let removePolicy = Statement(
      "DELETE FROM tidemark.tm_policy WHERE db=$1::bigint AND prefix=$2::bytea")

    // MARK: Upkeep

    /// Uploads that nobody goes on with count, so that they are deleted.
    static let space = Statement(
      """
      SELECT bytes, garbage + coalesce((SELECT sum(u.received) FROM tidemark.tm_upload u
        WHERE u.db=$1::bigint AND u.touched < \(milliseconds) - $2::bigint), 0)::bigint
      FROM tidemark.tm_db WHERE db=$1::bigint
      """)

    static let shortenLeases = Statement(
      """
      UPDATE tidemark.tm_lease SET expires=least(expires, \(milliseconds) + $2::bigint),
        reads_until=least(reads_until, \(milliseconds) + $2::bigint)
      WHERE db=$1::bigint AND greatest(expires, reads_until) > \(milliseconds) + $2::bigint
      """)

    static let removeLeases = Statement(
      "DELETE FROM tidemark.tm_lease WHERE db=$1::bigint AND expires<=\(milliseconds)")

    /// Takes a database's upkeep for a minute, where no other server has it; gives it back.
    static let takeUpkeep = Statement(
      """
      UPDATE tidemark.tm_db SET upkeep_until=\(milliseconds) + 60000
      WHERE db=$1::bigint AND upkeep_until<\(milliseconds) RETURNING 1::bigint
      """)
    static let giveUpkeep = Statement(
      "UPDATE tidemark.tm_db SET upkeep_until=0 WHERE db=$1::bigint")

    /// The lock of the database's row, so that what follows sees all that was appended.
    static let lock = Statement(
      "UPDATE tidemark.tm_db SET upkeep_until=\(milliseconds) + 60000 WHERE db=$1::bigint")

    /// Deletes what the next entries supersede, and changes among them that lost; not from the
    /// first entry on that is younger than the time for which history is kept.
    static let dropSuperseded = Statement(
      """
      WITH d AS (
        SELECT t.history_from AS start, least(t.history_from + $2::bigint, t.head, (
          SELECT e.off - 1 FROM tidemark.tm_entry e WHERE e.db=$1::bigint AND e.off>t.history_from
            AND e.off<=t.history_from + $2::bigint
            AND e.rtime/65536 > \(milliseconds) - $3::bigint ORDER BY e.off LIMIT 1)) AS stop
        FROM tidemark.tm_db t WHERE t.db=$1::bigint),
      old AS (
        SELECT CASE WHEN n.kind=2 THEN n.off ELSE n.prev END AS off
        FROM d CROSS JOIN LATERAL (SELECT n.kind, n.off, n.prev FROM tidemark.tm_entry n
          WHERE n.db=$1::bigint AND n.off>d.start AND n.off<=d.stop OFFSET 0) n),
      gone AS (
        DELETE FROM tidemark.tm_entry e WHERE e.ctid = ANY(ARRAY(
          SELECT l.ctid FROM old CROSS JOIN LATERAL (SELECT l.ctid FROM tidemark.tm_entry l
            WHERE l.db=$1::bigint AND l.off=old.off OFFSET 0) l))
        RETURNING e.off, e.size),
      refs AS (
        DELETE FROM tidemark.tm_ref r WHERE r.ctid = ANY(ARRAY(
          SELECT l.ctid FROM gone CROSS JOIN LATERAL (SELECT l.ctid FROM tidemark.tm_ref l
            WHERE l.db=$1::bigint AND l.off=gone.off OFFSET 0) l)))
      UPDATE tidemark.tm_db SET history_from=d.stop, bytes=bytes-g.size,
        garbage=greatest(garbage-g.size, 0)
      FROM d CROSS JOIN (SELECT coalesce(sum(size), 0)::bigint size, count(*) n FROM gone) g
      WHERE db=$1::bigint RETURNING d.stop - d.start, g.n
      """)

    /// Deletes the next deletes that still count and that no replica with a lease has yet to read.
    static let dropDeletes = Statement(
      """
      WITH d AS (
        SELECT t.deletes_through AS start, least(t.deletes_through + $2::bigint, t.history_from, (
          SELECT min(l.off) FROM tidemark.tm_lease l
          WHERE l.db=$1::bigint AND least(l.expires, l.reads_until) > \(milliseconds)
            AND least(l.expires, l.reads_until) < 9223372036854775807
            AND (l.off > 0 OR EXISTS (SELECT 1 FROM tidemark.tm_mark m
              WHERE m.db=l.db AND m.replica=l.replica)))) AS stop
        FROM tidemark.tm_db t WHERE t.db=$1::bigint),
      old AS (
        SELECT e.off, e.size, e.ctid AS entry, k.ctid AS key
        FROM d CROSS JOIN LATERAL (SELECT e.*, e.ctid FROM tidemark.tm_entry e
          WHERE e.db=$1::bigint AND e.off>d.start AND e.off<=d.stop AND e.kind=1 OFFSET 0) e
        CROSS JOIN LATERAL (SELECT k.ctid FROM tidemark.tm_key k WHERE k.db=$1::bigint
          AND k.hash=e.hash AND k.ident=coalesce(e.ident, e.key) AND k.off=e.off OFFSET 0) k),
      keys AS (
        DELETE FROM tidemark.tm_key k WHERE k.ctid = ANY(ARRAY(SELECT key FROM old))),
      gone AS (
        DELETE FROM tidemark.tm_entry e WHERE e.ctid = ANY(ARRAY(SELECT entry FROM old)))
      UPDATE tidemark.tm_db SET deletes_through=greatest(d.stop, d.start),
        truncated=greatest(truncated, g.last), bytes=bytes-g.size
      FROM d CROSS JOIN (SELECT coalesce(sum(size), 0)::bigint size,
        coalesce(max(off), 0) AS last, count(*) n FROM old) g
      WHERE db=$1::bigint RETURNING d.stop - d.start, g.n
      """)
  }
#endif
