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

    /// How many offsets of the feed there are for each step of a scan: PostgreSQL finds the places
    /// of all keys of a step before it reads any, within its `statement_timeout`.
    private static let offsetsPerStep: UInt64 = 4 << 20

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
      let begin = Statements.beginScan.map { $0() }
      let began = try connection.read(begin + [Statements.headOnly(row)])
      guard var row = began.last?.first else { throw Failure(deleted()) }
      let head = try Failure.own { () throws(TidemarkError) in try row.ordered() }
      for range in table.ranges {
        let width = (range.upperBound - range.lowerBound) / (head / Self.offsetsPerStep + 1)
        var (start, isLast) = (range.lowerBound, false)
        while !isLast {
          isLast = range.upperBound - start <= width
          let end = isLast ? range.upperBound : start + width
          let bounds = [start, end].map { Parameter.bigint(KeyColumns.ordered($0)) }
          try scan(
            connection, Call(statement: Statements.fingerprints, parameters: [self.row] + bounds),
            into: &table, wants)
          start = end &+ 1
        }
      }
      _ = try connection.read([Statements.endScan()])
      return head
    }

    private func scan(
      _ connection: Connection, _ keys: Call, into table: inout DigestTable,
      _ wants: (_ key: [UInt8], _ labels: [[UInt8]]) -> Bool
    ) throws(Failure) {
      var pending = try connection.begin([Statements.closeKeys(), keys, Statements.nextKeys()])
      while true {
        guard let found = try connection.finish(pending).last, found.count > 0 else { return }
        // PostgreSQL reads the next keys while these are added.
        pending = try connection.begin([Statements.nextKeys()])
        try Failure.own { () throws(TidemarkError) in try add(found, to: &table, wants) }
      }
    }

    private func add(
      _ found: Rows, to table: inout DigestTable,
      _ wants: (_ key: [UInt8], _ labels: [[UInt8]]) -> Bool
    ) throws(TidemarkError) {
      for var row in found.all {
        let key = try row.bytes()
        let print = ContentFingerprint(bits: try row.bits128())
        let offset = try row.ordered()
        let hash = ContentFingerprint.keyHash(key.rawSpan)
        let labels = try LabelColumn.decode(try row.bytes())
        guard table.covers(hash: hash), wants(key, labels) else { continue }
        table.add(DigestTable.Row(hash: hash, fingerprint: print, offset: offset))
      }
    }
  }
#endif
