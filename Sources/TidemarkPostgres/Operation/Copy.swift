#if PostgreSQL
  public import Tidemark
  internal import TidemarkEngine
  internal import TidemarkSyncProtocol
  internal import TidemarkSyncServer

  extension PostgresFeeds {
    /// Copies a sync server's database from its directory, as it is: feed, epochs, offsets, marks,
    /// leases, policies and attachments. Devices that call the copy notice a new epoch, and go on.
    /// Uploads that are not finished begin anew.
    ///
    /// Nobody else may have the directory open. Nothing is seen of the copy before it is whole.
    /// - Parameters:
    ///   - path: the directory of the store.
    ///   - name: of the database to make.
    /// - Returns: how many entries were copied.
    /// - Throws: `conflict` where there is a database of the name; what the store throws.
    public func copy(fromStoreAt path: String, to name: String) throws(TidemarkError) -> Int {
      guard try !has(name) else {
        throw TidemarkError(.conflict, "there is a database of this name already")
      }
      var configuration = Store.Configuration(compaction: .onRequest)
      configuration.access = .write
      let feed = try StoreFeed(at: path, configuration: configuration)
      do throws(TidemarkError) {
        let copied = try StoreCopy(feed, pool).run(as: name)
        try feed.close()
        return copied
      } catch {
        try? feed.close()
        throw error
      }
    }
  }

  /// One copy of a store's feed into the tables.
  private struct StoreCopy {
    private let feed: StoreFeed
    private let pool: Pool
    private let view: FeedView
    private let row = Parameter.bigint(Int64.random(in: 1...Int64.max))

    private static let rowsAtOnce = 1_000
    private static let bytesAtOnce = 4 << 20

    init(_ feed: StoreFeed, _ pool: Pool) throws(TidemarkError) {
      (self.feed, self.pool) = (feed, pool)
      view = try feed.look(FeedQuestion())
    }

    func run(as name: String) throws(TidemarkError) -> Int {
      let range = view.range
      try write([
        Self.begin(
          row, .bytea(feed.id.bytes), .ordered(range.head), .bits(view.epoch),
          .ordered(view.policies.revision), .ordered(range.truncatedThrough),
          .ordered(view.historyFrom)),
        Self.epochs(
          row, .bigints(range.epochs.map { Int64(clamping: $0.firstOffset) }),
          .bigints(range.epochs.map { Int64(bitPattern: $0.epoch) })),
      ])
      try write(
        view.policies.rows.map {
          Statements.setPolicy(row, .bytea($0.prefix.bytes), .bytea(PolicyTable.encode($0.policy)))
        })
      try copyReplicas()
      let copied = try copyEntries()
      _ = try pool.again { (connection) throws(Failure) in
        do throws(Failure) {
          return try connection.write([Self.end(row), Self.addName(.text(name), row)])
        } catch {
          if error.isGuard {
            throw Failure(TidemarkError(.closed, "the copy stood still, and was deleted"))
          }
          guard error.state == "23505" else { throw error }
          throw Failure(TidemarkError(.conflict, "somebody has made a database of this name"))
        }
      }
      return copied
    }

    /// - Parameters:
    ///   - bytes: that entries among the rows count for.
    ///   - superseding: the offsets of the entries that they supersede.
    ///   - until: the latest time of one of them.
    private func write(
      _ calls: [Call], bytes: Int = 0, superseding: [UInt64] = [], until: UInt64 = 0
    ) throws(TidemarkError) {
      if calls.isEmpty { return }
      let end = Self.goOn(
        row, .bigint(Int64(bytes)), .bigints(superseding.map { Int64(clamping: $0) }),
        .bits(until))
      guard try pool.write(calls + [end], guarded: true) != nil else {
        throw TidemarkError(.closed, "the copy stood still for too long, and was deleted")
      }
    }

    private func copyReplicas() throws(TidemarkError) {
      for replica in try feed.replicaRecords() {
        var calls: [Call] = []
        let id = Parameter.bytea(replica.id.bytes)
        if let mark = replica.mark {
          calls.append(
            Self.mark(
              row, id, .bits(mark.mark.mark.number), .bits(mark.mark.mark.batchID.bits),
              .ordered(mark.mark.position.offset), .bytea(mark.record)))
        }
        if let lease = replica.lease {
          let unknown = FeedLease.columns(nil)
          calls.append(
            Call(
              statement: Statements.setLease,
              parameters: [row, id] + unknown + FeedLease.columns(lease) + [.bigint(.max)]))
        }
        try write(calls)
      }
    }

    private func copyEntries() throws(TidemarkError) -> Int {
      var (copied, through) = (0, UInt64(0))
      var contents: Set<AttachmentID> = []
      while through < view.range.head {
        let page = try feed.read(
          FeedQuery(after: through, through: view.range.head, limit: Self.rowsAtOnce))
        var rows = page.rows[...]
        while !rows.isEmpty {
          var bytes = 0
          let next = rows.prefix { row in
            defer { bytes += row.head.valueLength }
            return bytes < Self.bytesAtOnce
          }
          for id in next.compactMap(\.head.attributes.attachment) where contents.insert(id).inserted
          {
            try copyContent(id)
          }
          try copy(Array(next))
          rows = rows.dropFirst(next.count)
          copied += next.count
        }
        through = page.through
      }
      return copied
    }

    private func copy(_ rows: [FeedRow]) throws(TidemarkError) {
      let heads = rows.map { row in
        var head = row.head
        // A program wrote it, without a server: which labels the key had is not known.
        if head.attributes.former == nil, head.previous > 0 {
          head.attributes.former = FormerLabels(forgottenThrough: head.offset)
        }
        return head
      }
      let values = try feed.values(at: heads.filter { $0.kind == .put }.map(\.offset))
      for head in heads where head.kind == .put && values[head.offset] == nil {
        throw TidemarkError(.damaged, "the store has no value at offset \(head.offset)")
      }
      let keys = heads.map { KeyColumns($0.key) }
      let labels = heads.map { LabelColumn.encode($0.labels) }
      let offsets = heads.map { Int64(clamping: $0.offset) }
      var calls = [
        Self.entries(
          row, .bigints(offsets), .bigints(heads.map { $0.kind == .put ? 0 : 1 }),
          .bigints(keys.map(\.hash)), .byteas(heads.map(\.key)), .byteas(keys.map(\.longIdent)),
          .byteas(labels), .byteas(heads.map(\.operation.replica.bytes)),
          .bigints(heads.map { Int64(bitPattern: $0.operation.sequence) }),
          .bigints(heads.map { Int64(bitPattern: $0.commitTime) }),
          .bigints(heads.map { Int64(bitPattern: $0.received) }),
          .bigints(heads.map { Int64(clamping: $0.previous) }),
          .bigints(heads.map { Int64($0.storedBytes) }), .byteas(heads.map(\.attributes.column)),
          .byteas(heads.map { $0.kind == .put ? values[$0.offset] : nil }))
      ]
      let named = heads.filter { $0.attributes.attachment != nil }
      if !named.isEmpty {
        calls.append(
          // Offsets count from the head less so many: these are absolute then.
          ContentStatements.addReferences(
            row, .ordered(view.range.head), .bigints(named.map { Int64(clamping: $0.offset) }),
            .byteas(named.map { $0.attributes.attachment?.column })))
      }
      var last: [[UInt8]: Int] = [:]
      for (index, head) in heads.enumerated() { last[head.key] = index }
      let kept = last.values.sorted()
      let prints = kept.map { index -> ContentFingerprint in
        let head = heads[index]
        guard let value = values[head.offset] else { return ContentFingerprint(bits: 0) }
        return ContentFingerprint(
          key: head.key.rawSpan, value: value.rawSpan, labels: head.labels,
          attachment: head.attributes.attachment)
      }
      calls.append(
        Self.keys(
          row, .bigints(kept.map { offsets[$0] }), .bigints(kept.map { keys[$0].hash }),
          .byteas(kept.map { keys[$0].ident }),
          .bigints(kept.map { Int64(clamping: heads[$0].previous) }),
          .bools(kept.map { heads[$0].kind == .delete }), .byteas(kept.map { labels[$0] }),
          .bigints(prints.map { Int64(truncatingIfNeeded: $0.bits) }),
          .bigints(prints.map { Int64(truncatingIfNeeded: $0.bits >> 64) })))
      let bytes = heads.reduce(0) { $0 + $1.storedBytes }
      try write(
        calls, bytes: bytes, superseding: heads.map(\.previous),
        until: heads.map(\.received).max() ?? 0)
    }

    private func copyContent(_ id: AttachmentID) throws(TidemarkError) {
      let owner = Parameter.bigint(Int64.random(in: 1...Int64.max))
      let size = PostgresContents.chunkBytes
      for start in stride(from: 0, to: Int(id.length), by: Self.bytesAtOnce) {
        let part: [UInt8]?
        do { part = try feed.contents?.read(id, from: start, count: Self.bytesAtOnce) } catch {
          throw TidemarkError(.damaged, "an attachment of the store cannot be read", cause: error)
        }
        guard let part, !part.isEmpty else {
          throw TidemarkError(.damaged, "the store lacks an attachment that an entry names")
        }
        let chunks = stride(from: 0, to: part.count, by: size)
        try write([
          ContentStatements.addChunks(
            row, owner, .bigints(chunks.map { Int64(start + $0) }),
            .byteas(chunks.map { Array(part[$0...].prefix(size)) }))
        ])
      }
      try write([Self.content(row, .bytea(id.column), owner)])
    }

    // MARK: Statements

    private static let begin = Statement(
      """
      INSERT INTO tidemark.tm_db (db, feed, head, last_time, epoch, incarnation, policies,
        truncated, history_from, deletes_through, bytes, garbage, quota, state, upkeep_until)
      VALUES ($1::bigint, $2::bytea, $3::bigint, 0, $4::bigint, '', $5::bigint, $6::bigint,
        $7::bigint, 0, 0, 0, 0, 3, \(Statements.milliseconds) + 600000)
      """)
    /// Fails where another server has taken the copy for one that was given up.
    private static let goOn = Statement(
      """
      WITH u AS (
        UPDATE tidemark.tm_db SET upkeep_until=\(Statements.milliseconds) + 600000,
          bytes=bytes + $2::bigint, last_time=greatest(last_time, $4::bigint),
          garbage=garbage + coalesce((SELECT sum(e.size) FROM unnest($3::bigint[]) q(off)
            CROSS JOIN LATERAL (SELECT e.size FROM tidemark.tm_entry e
              WHERE e.db=$1::bigint AND e.off=q.off OFFSET 0) e), 0)::bigint
        WHERE db=$1::bigint AND state=3 RETURNING 1)
      SELECT 1 / count(*) FROM u
      """)

    private static let epochs = Statement(
      """
      INSERT INTO tidemark.tm_epoch (db, first, epoch)
      SELECT $1::bigint, u.first, u.epoch FROM unnest($2::bigint[], $3::bigint[]) u(first, epoch)
      """)

    private static let mark = Statement(
      """
      INSERT INTO tidemark.tm_mark (db, replica, number, batch, off, record)
      VALUES ($1::bigint, $2::bytea, $3::bigint, $4::bigint, $5::bigint, $6::bytea)
      """)

    private static let entries = Statement(
      """
      INSERT INTO tidemark.tm_entry (db, off, kind, hash, key, ident, labels, replica, seq, wtime,
        rtime, prev, size, attrs, vlen, value)
      SELECT $1::bigint, u.off, u.kind, u.hash, u.key, u.ident, u.labels, u.replica, u.seq, u.wtime,
        u.rtime, u.prev, u.size, u.attrs, coalesce(octet_length(u.value), 0), u.value
      FROM unnest($2::bigint[], $3::bigint[], $4::bigint[], $5::bytea[], $6::bytea[], $7::bytea[],
        $8::bytea[], $9::bigint[], $10::bigint[], $11::bigint[], $12::bigint[], $13::bigint[],
        $14::bytea[], $15::bytea[])
        u(off, kind, hash, key, ident, labels, replica, seq, wtime, rtime, prev, size, attrs, value)
      """)

    private static let keys = Statement(
      """
      INSERT INTO tidemark.tm_key (db, off, hash, ident, prev, deleted, labels, low, high)
      SELECT $1::bigint, u.* FROM unnest($2::bigint[], $3::bigint[], $4::bytea[], $5::bigint[],
        $6::boolean[], $7::bytea[], $8::bigint[], $9::bigint[]) u
      \(Statements.keyChange)
      """)

    private static let content = Statement(
      """
      INSERT INTO tidemark.tm_content (db, id, chunks, touched)
      VALUES ($1::bigint, $2::bytea, $3::bigint, \(Statements.milliseconds))
      """)

    /// The incarnation is none, so that the first append begins an epoch.
    private static let end = Statement(
      """
      WITH u AS (
        UPDATE tidemark.tm_db SET state=0, upkeep_until=0
        WHERE db=$1::bigint AND state=3 RETURNING 1)
      SELECT 1 / count(*) FROM u
      """)

    private static let addName = Statement(
      "INSERT INTO tidemark.tm_name (name, db) VALUES ($1::text, $2::bigint)")
  }
#endif
