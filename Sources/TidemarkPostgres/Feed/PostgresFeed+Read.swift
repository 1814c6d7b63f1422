#if PostgreSQL
  internal import Tidemark
  internal import TidemarkEngine
  internal import TidemarkSyncProtocol
  internal import TidemarkSyncServer

  extension PostgresFeed {
    func read(_ query: FeedQuery) throws(TidemarkError) -> FeedPage {
      let found = try pool.read([
        Statements.page(
          row, .ordered(query.after), .ordered(query.through), .bigint(Int64(query.limit)))
      ])[0]
      var rows: [FeedRow] = []
      var later: [UInt64: [Int]] = [:]
      for index in 0..<found.count {
        var row = found[index]
        let head = try FeedHead(&row)
        let next = try row.ordered()
        var entry = FeedRow(head: head)
        if query.wantsFormer(head) {
          entry.former = head.attributes.former?.placed(at: head.offset)
        }
        if next > 0, query.wantsLater(head) { later[next, default: []].append(index) }
        rows.append(entry)
      }
      if !later.isEmpty {
        for (offset, head) in try heads(at: Array(later.keys)) {
          // The handler does not ask for the position of a later state in another range than its
          // own.
          let state = FeedState(head: head, position: .beginning, revision: offset)
          for index in later[offset] ?? [] { rows[index].later = state }
        }
      }
      // Where the rows are fewer than asked for there are no more.
      let through = found.count < query.limit ? query.through : rows.last?.head.offset
      return (rows, through ?? query.through)
    }

    func heads(at offsets: [UInt64]) throws(TidemarkError) -> [UInt64: FeedHead] {
      if offsets.isEmpty { return [:] }
      let found = try pool.read([
        Statements.heads(row, .bigints(offsets.map { Int64(clamping: $0) }))
      ])[0]
      var heads: [UInt64: FeedHead] = [:]
      for index in 0..<found.count {
        var row = found[index]
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
      for index in 0..<found.count {
        var row = found[index]
        values[try row.ordered()] = try row.bytes()
      }
      return values
    }

    // MARK: Digests

    /// How many keys are read at a time.
    private static let keysAtOnce = 8_192

    func scan(
      into table: inout DigestTable, wants: (_ key: [UInt8], _ labels: [[UInt8]]) -> Bool
    ) throws(TidemarkError) -> UInt64 {
      // A transaction that fails begins anew with an empty table.
      let empty = table
      var result: Result<(DigestTable, UInt64), TidemarkError>?
      try pool.again { (connection) throws(Failure) in
        var scanned = empty
        do {
          let head = try scan(connection, into: &scanned, wants)
          result = .success((scanned, head))
        } catch let error as Failure {
          throw error
        } catch let error as TidemarkError {
          result = .failure(error)
        } catch {
          throw Failure(message: "\(error)")
        }
      }
      let scanned = try result?.get() ?? (table, 0)
      table = scanned.0
      return scanned.1
    }

    /// Reads all keys in one snapshot.
    private func scan(
      _ connection: Connection, into table: inout DigestTable,
      _ wants: (_ key: [UInt8], _ labels: [[UInt8]]) -> Bool
    ) throws -> UInt64 {
      let began = try connection.read([Statements.beginSnapshot(), Statements.headOnly(row)])
      guard var row = began[1].first else { throw Self.deleted }
      let head = try row.ordered()
      for range in table.ranges {
        var after: (hash: Int64, ident: [UInt8]) = (KeyColumns.ordered(range.lowerBound), [])
        while true {
          let found = try connection.read([
            Statements.fingerprints(
              self.row, .bigint(after.hash), .bytea(after.ident),
              .bigint(KeyColumns.ordered(range.upperBound)), .bigint(Int64(Self.keysAtOnce)))
          ])[0]
          try add(found, connection, &after, to: &table, wants)
          if found.count < Self.keysAtOnce { break }
        }
      }
      _ = try connection.read([Statements.endSnapshot()])
      return head
    }

    private func add(
      _ found: Rows, _ connection: Connection, _ after: inout (hash: Int64, ident: [UInt8]),
      to table: inout DigestTable, _ wants: (_ key: [UInt8], _ labels: [[UInt8]]) -> Bool
    ) throws {
      var long: [UInt64: (row: DigestTable.Row, labels: [[UInt8]])] = [:]
      for index in 0..<found.count {
        var row = found[index]
        after = (try row.bigint(), try row.bytes())
        let print = ContentFingerprint(bits: try row.bits128())
        let offset = try row.ordered()
        let key = DigestTable.Row(
          hash: KeyColumns.hash(after.hash), fingerprint: print, offset: offset)
        let labels = try LabelColumn.decode(try row.bytes())
        if !KeyColumns.isKey(after.ident) {
          long[offset] = (key, labels)
        } else if wants(after.ident, labels) {
          table.add(key)
        }
      }
      if long.isEmpty { return }
      let heads = try connection.read([
        Statements.heads(row, .bigints(long.keys.map { Int64(clamping: $0) }))
      ])[0]
      for index in 0..<heads.count {
        var row = heads[index]
        let head = try FeedHead(&row)
        if let key = long[head.offset], wants(head.key, key.labels) { table.add(key.row) }
      }
    }
  }
#endif
