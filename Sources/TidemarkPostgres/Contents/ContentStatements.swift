#if PostgreSQL
  /// The statements of contents, in the same SQL as ``Statements``.
  enum ContentStatements {
    private static let now = "(extract(epoch FROM clock_timestamp()) * 1000)::bigint"

    /// Also where it was touched just now: whoever holds it must find out whether it is there.
    static let touch = Statement(
      """
      UPDATE tidemark.tm_content SET touched=\(now) WHERE db=$1::bigint AND id=$2::bytea
      RETURNING 1::bigint
      """)

    /// One row with nulls where the content is there and has no such parts.
    static let chunksOfContent = Statement(
      """
      SELECT k.at, k.bytes FROM tidemark.tm_content c
      LEFT JOIN tidemark.tm_chunk k ON k.db=c.db AND k.owner=c.chunks
        AND k.at>$3::bigint AND k.at<$4::bigint
      WHERE c.db=$1::bigint AND c.id=$2::bytea ORDER BY k.at
      """)

    static let chunks = Statement(
      """
      SELECT at, bytes FROM tidemark.tm_chunk WHERE db=$1::bigint AND owner=$2::bigint ORDER BY at
      """)

    static let upload = Statement(
      """
      SELECT received, sha, chunks FROM tidemark.tm_upload
      WHERE db=$1::bigint AND owner=$2::bytea AND id=$3::bytea
      """)

    static let uploads = Statement(
      """
      SELECT owner, id, received, \(now) - touched FROM tidemark.tm_upload
      WHERE db=$1::bigint ORDER BY touched
      """)

    /// Begins an upload, and goes on with one that has as many bytes as its sender knew of; fails
    /// where another server has done so, or has dropped it.
    static let begin = Statement(
      """
      WITH u AS (
        INSERT INTO tidemark.tm_upload (db, owner, id, received, sha, chunks, touched)
        VALUES ($1::bigint, $2::bytea, $3::bytea, $5::bigint, $6::bytea, $7::bigint, \(now))
        ON CONFLICT (db, owner, id) DO NOTHING RETURNING 1)
      SELECT 1 / count(*) FROM u WHERE $4::bigint = 0
      """)
    static let advance = Statement(
      """
      WITH u AS (
        UPDATE tidemark.tm_upload SET received=$5::bigint, sha=$6::bytea, touched=\(now)
        WHERE db=$1::bigint AND owner=$2::bytea AND id=$3::bytea AND received=$4::bigint
          AND chunks=$7::bigint RETURNING 1)
      SELECT 1 / count(*) FROM u
      """)

    static let addChunks = Statement(
      """
      INSERT INTO tidemark.tm_chunk (db, owner, at, bytes)
      SELECT $1::bigint, $2::bigint, q.at, q.bytes
      FROM unnest($3::bigint[], $4::bytea[]) q(at, bytes)
      """)

    /// The parts go later, in slices: there may be millions.
    static let drop = Statement(
      """
      WITH gone AS (
        DELETE FROM tidemark.tm_upload WHERE db=$1::bigint AND owner=$2::bytea AND id=$3::bytea
        RETURNING db, chunks)
      INSERT INTO tidemark.tm_orphan (db, owner) SELECT db, chunks FROM gone
      """)

    /// Makes a content of an upload. Where there is the same already, the upload's parts go.
    static let adopt = Statement(
      """
      WITH u AS (
        DELETE FROM tidemark.tm_upload WHERE db=$1::bigint AND owner=$2::bytea AND id=$3::bytea
        RETURNING db, id, chunks),
      made AS (
        INSERT INTO tidemark.tm_content (db, id, chunks, touched)
        SELECT db, id, chunks, \(now) FROM u ON CONFLICT (db, id) DO NOTHING RETURNING chunks)
      INSERT INTO tidemark.tm_orphan (db, owner)
      SELECT db, chunks FROM u WHERE chunks NOT IN (SELECT chunks FROM made)
      """)

    // MARK: References

    /// Fails where a content is not there: another primary may lack what was held on the last one.
    static let addReferences = Statement(
      """
      INSERT INTO tidemark.tm_ref (db, off, id)
      SELECT d.db, d.head - $2::bigint + u.i / (CASE WHEN EXISTS (SELECT 1
        FROM tidemark.tm_content c WHERE c.db=d.db AND c.id=u.id) THEN 1 ELSE 0 END), u.id
      FROM tidemark.tm_db d
      CROSS JOIN unnest($3::bigint[], $4::bytea[]) u(i, id) WHERE d.db=$1::bigint
      """)

    /// Deletes contents that no entry refers to, and uploads that nobody goes on with.
    static let dropOld = ["tm_upload", "tm_content"].map { table in
      Statement(
        """
        WITH gone AS (
          DELETE FROM tidemark.\(table) c WHERE c.db=$1::bigint AND c.touched<\(now)-$2::bigint
            \(table == "tm_upload" ? "" : """
              AND NOT EXISTS (SELECT 1 FROM tidemark.tm_ref r WHERE r.db=c.db AND r.id=c.id)
              """)
          RETURNING db, chunks)
        INSERT INTO tidemark.tm_orphan (db, owner) SELECT db, chunks FROM gone
        """)
    }

    /// Deletes some parts of what was dropped; the row that names them goes with the last.
    static let dropParts = Statement(
      """
      WITH o AS (SELECT owner FROM tidemark.tm_orphan WHERE db=$1::bigint LIMIT 1),
      gone AS (
        DELETE FROM tidemark.tm_chunk k USING (
          SELECT c.owner, c.at FROM tidemark.tm_chunk c JOIN o ON c.owner=o.owner
          WHERE c.db=$1::bigint ORDER BY c.at LIMIT $2::bigint) x
        WHERE k.db=$1::bigint AND k.owner=x.owner AND k.at=x.at RETURNING 1),
      last AS (
        DELETE FROM tidemark.tm_orphan t USING o WHERE t.db=$1::bigint AND t.owner=o.owner
          AND (SELECT count(*) FROM gone) < $2::bigint)
      SELECT count(*) FROM o
      """)
  }
#endif
