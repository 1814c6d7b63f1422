#if PostgreSQL
  internal import Tidemark
  internal import TidemarkEngine
  internal import TidemarkSyncProtocol
  internal import TidemarkSyncServer

  extension PostgresFeed {
    func read(_ query: FeedQuery) throws(TidemarkError) -> FeedPage {
      // What the reader asks next comes along: the values, and whether the feed has gone on.
      let question = query.replica.map { FeedQuestion(of: $0) }
      let page = Statements.page(
        row, .ordered(query.after), .ordered(query.through), .bigint(Int64(query.limit)),
        .bigint(Int64(query.valueBytes)), .bigint(Int64(SyncContent.mostInlineBytes)))
      let found = try pool.read(
        [page] + (question.map { (q) throws(TidemarkError) in try calls(q) } ?? []))
      var result = FeedPage(through: query.through)
      for var row in found[0].all {
        let head = try FeedHead(&row)
        var entry = FeedRow(head: head)
        result.values[head.offset] = row.optionalBytes()
        if query.wantsFormer(head) {
          entry.former = head.attributes.former?.placed(at: head.offset)
        }
        if !row.isNull, query.wantsLater(head) { entry.later = try FeedHead(&row) }
        result.rows.append(entry)
      }
      // Where the rows are fewer than asked for there are no more.
      if found[0].count == query.limit, let last = result.rows.last {
        result.through = last.head.offset
      }
      if let question { result.end = try view(Array(found.dropFirst()), question) }
      return result
    }

    func heads(at offsets: [UInt64]) throws(TidemarkError) -> [UInt64: FeedHead] {
      if offsets.isEmpty { return [:] }
      let found = try pool.read([
        Statements.heads(row, .bigints(offsets.map { Int64(clamping: $0) }))
      ])[0]
      var heads: [UInt64: FeedHead] = [:]
      for var row in found.all {
        let head = try FeedHead(&row)
        heads[head.offset] = head
      }
      return heads
    }

    func values(at offsets: [UInt64]) throws(TidemarkError) -> [UInt64: [UInt8]] {
      if offsets.isEmpty { return [:] }
      let found = try pool.read([
        Statements.values(row, .bigints(offsets.map { Int64(clamping: $0) }))
      ])[0]
      var values: [UInt64: [UInt8]] = [:]
      for var row in found.all {
        values[try row.ordered()] = try row.bytes()
      }
      return values
    }

    // MARK: Digests

    /// How many keys are read at a time.
    private static let keysAtOnce: Int64 = 8_192

    func scan(
      into table: inout DigestTable, wants: (_ key: [UInt8], _ labels: [[UInt8]]) -> Bool
    ) throws(TidemarkError) -> UInt64 {
      // A transaction that fails begins anew with an empty table.
      let empty = table
      return try pool.again { (connection) throws(Failure) in
        table = empty
        return try scan(connection, into: &table, wants)
      }
    }

    /// Reads all keys in one snapshot.
    private func scan(
      _ connection: Connection, into table: inout DigestTable,
      _ wants: (_ key: [UInt8], _ labels: [[UInt8]]) -> Bool
    ) throws(Failure) -> UInt64 {
      let began = try connection.read([Statements.beginSnapshot(), Statements.headOnly(row)])
      guard var row = began[1].first else { throw Failure(deleted()) }
      for range in table.ranges {
        var after: (hash: Int64, ident: [UInt8]) = (KeyColumns.ordered(range.lowerBound), [])
        var found: Rows
        repeat {
          found = try connection.read([
            Statements.fingerprints(
              self.row, .bigint(after.hash), .bytea(after.ident),
              .bigint(KeyColumns.ordered(range.upperBound)), .bigint(Self.keysAtOnce))
          ])[0]
          do throws(TidemarkError) { try add(found, &after, to: &table, wants) } catch {
            throw Failure(error)
          }
        } while found.count == Self.keysAtOnce
      }
      _ = try connection.read([Statements.endSnapshot()])
      do throws(TidemarkError) { return try row.ordered() } catch { throw Failure(error) }
    }

    private func add(
      _ found: Rows, _ after: inout (hash: Int64, ident: [UInt8]), to table: inout DigestTable,
      _ wants: (_ key: [UInt8], _ labels: [[UInt8]]) -> Bool
    ) throws(TidemarkError) {
      for var row in found.all {
        after = (try row.bigint(), try row.bytes())
        let print = ContentFingerprint(bits: try row.bits128())
        let offset = try row.ordered()
        let labels = try LabelColumn.decode(try row.bytes())
        guard wants(row.optionalBytes() ?? after.ident, labels) else { continue }
        table.add(
          DigestTable.Row(
            hash: KeyColumns.hash(after.hash), fingerprint: print, offset: offset))
      }
    }
  }
#endif
