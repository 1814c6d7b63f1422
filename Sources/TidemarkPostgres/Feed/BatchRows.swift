#if PostgreSQL
  internal import Tidemark
  internal import TidemarkEngine
  internal import TidemarkSyncProtocol
  internal import TidemarkSyncServer

  /// The rows that a batch adds and changes.
  struct BatchRows {
    /// How many bytes of rows are added, by puts that count too, and how many of those that were
    /// there are superseded.
    private var (added, puts): (Int64, Int64) = (0, 0)
    private var superseded: Int64 = 0
    private var entries: [Row] = []
    /// The index of the last entry of each key, from 1.
    private var last: [[UInt8]: Int] = [:]
    private let batch: DecidedBatch

    private struct Row {
      var key: KeyColumns
      var entry: DecidedBatch.Entry
      var bytes: Int
      /// The entry that this one supersedes: its index in the batch, from 1, where the batch has
      /// written the key before; or else its offset in the feed. 0 for neither.
      var after = 0
      var prev: UInt64 = 0
      /// The offset of the key's last entry in the view; 0 for none.
      var known: UInt64 = 0
    }

    init(_ batch: DecidedBatch, after view: FeedView) throws(TidemarkError) {
      self.batch = batch
      var held: [[UInt8]: (offset: UInt64, bytes: Int)] = [:]
      for state in view.states.compactMap(\.self) {
        held[state.head.key] = (state.revision, state.head.storedBytes)
      }
      for (index, entry) in batch.entries.enumerated() {
        let key = batch.request.changes[entry.change].key
        let columns = KeyColumns(key)
        let head = batch.head(of: entry, at: 0, previous: 0, received: 0)
        let bytes = head.storedBytes
        added += Int64(bytes)
        guard case .applies = entry.kind else {
          // A change that lost to a conflict policy is garbage at once: no key refers to it.
          superseded += Int64(bytes)
          entries.append(Row(key: columns, entry: entry, bytes: bytes))
          continue
        }
        if head.kind == .put { puts += Int64(bytes) }
        let before = held.updateValue((0, bytes), forKey: key)
        superseded += Int64(before?.bytes ?? 0)
        var row = Row(key: columns, entry: entry, bytes: bytes, prev: before?.offset ?? 0)
        row.after = last[key] ?? 0
        row.known = row.after > 0 ? entries[row.after - 1].known : row.prev
        entries.append(row)
        last[key] = index + 1
      }
    }

    /// The statements of an append: one for the batch, and one that adds references to the
    /// attachments that its entries name, if any.
    /// - Parameter record: the replica's mark after the batch.
    func calls(_ database: Parameter, after view: FeedView, _ record: [UInt8]) -> [Call] {
      let count = Parameter.bigint(Int64(batch.entries.count + 1))
      let changes = entries.map { batch.request.changes[$0.entry.change] }
      let labels = entries.map { LabelColumn.encode(batch.labelSets[$0.entry.change]) }
      let kinds = zip(entries, changes).map { row, change -> Int64 in
        row.entry.kind == .loses ? 2 : change.kind == .put ? 0 : 1
      }
      let kept = last.values.sorted().map { $0 - 1 }
      let prints = kept.map { batch.fingerprint(of: entries[$0].entry.change) }
      let append = Statements.append(
        database, count, .bigint(added), .bigint(superseded),
        .bytea(batch.request.replica.bytes), .bits(view.epoch), .ordered(view.policies.revision),
        .bigint(puts), .bits(batch.request.number), .bits(batch.request.batchID.bits),
        .bytea(record), .ordered(view.mark.position.offset),
        .bigints(entries.indices.map { Int64($0 + 1) }), .bigints(kinds),
        .bigints(entries.map(\.key.hash)), .byteas(changes.map(\.key)),
        .byteas(entries.map(\.key.longIdent)), .byteas(labels),
        .bigints(changes.map { Int64(bitPattern: $0.sequence) }),
        .bigints(changes.map { Int64(bitPattern: $0.commitTime) }),
        .bigints(entries.map { Int64($0.after) }),
        .bigints(entries.map { Int64($0.prev) }), .bigints(entries.map { Int64($0.bytes) }),
        .byteas(entries.map { batch.attributes(of: $0.entry).column }),
        .byteas(changes.map { $0.kind == .put ? $0.content.value : nil }),
        .bigints(kept.map { Int64($0 + 1) }), .bigints(kept.map { entries[$0].key.hash }),
        .byteas(kept.map { entries[$0].key.ident }),
        .bigints(kept.map { Int64(clamping: entries[$0].known) }),
        .bools(kept.map { kinds[$0] == 1 }), .byteas(kept.map { labels[$0] }),
        .bigints(prints.map { Int64(truncatingIfNeeded: $0.bits) }),
        .bigints(prints.map { Int64(truncatingIfNeeded: $0.bits >> 64) }),
        .ordered(view.range.truncatedThrough))
      let named = entries.indices.filter {
        entries[$0].entry.kind != .loses && changes[$0].content.attachment != nil
      }
      if named.isEmpty { return [append] }
      return [
        append,
        ContentStatements.addReferences(
          database, count, .bigints(named.map { Int64($0 + 1) }),
          .byteas(named.map { changes[$0].content.attachment?.engineID.column })),
      ]
    }
  }
#endif
