#if PostgreSQL
  internal import Tidemark
  internal import TidemarkEngine
  internal import TidemarkSyncProtocol
  internal import TidemarkSyncServer

  /// A key as tables have it: its hash, as a digest orders keys, and what tells it from others.
  struct KeyColumns {
    /// The hash with its highest bit flipped, so that SQL orders hashes as digests do.
    let hash: Int64
    /// The key, or for a long one its beginning and its SHA-256: a row of an index takes 2,704
    /// bytes at most, and a key has up to 65,535.
    let ident: [UInt8]
    /// `ident`, or nil where it equals the key, whose column then serves for both.
    let longIdent: [UInt8]?

    private static let mostBytes = 511
    private static let prefixBytes = 480

    init(_ key: [UInt8]) {
      hash = Self.ordered(ContentFingerprint.keyHash(key.rawSpan))
      guard key.count > Self.mostBytes else {
        (ident, longIdent) = (key, nil)
        return
      }
      var sum = SHA256()
      sum.add(key.rawSpan)
      ident = key.prefix(Self.prefixBytes) + sum.digest
      longIdent = ident
    }

    static func ordered(_ hash: UInt64) -> Int64 { Int64(bitPattern: hash ^ 1 << 63) }
  }

  /// What `tm_db.state` says of a database.
  enum DatabaseState: Int64 {
    case served = 0
    /// Its rows go, in slices.
    case deleted = 1
    case readOnly = 2
    /// It has no name yet, and becomes deleted where its copy stands still.
    case copied = 3
  }

  /// Labels in one column: each with its length before it.
  enum LabelColumn {
    static func encode(_ labels: [[UInt8]]) -> [UInt8] {
      labels.flatMap { [UInt8($0.count)] + $0 }
    }

    static func decode(_ bytes: [UInt8]) throws(TidemarkError) -> [[UInt8]] {
      var labels: [[UInt8]] = []
      var rest = bytes[...]
      while let count = rest.popFirst() {
        guard count <= rest.count else { throw Row.otherType }
        labels.append(Array(rest.prefix(Int(count))))
        rest = rest.dropFirst(Int(count))
      }
      return labels
    }
  }

  extension EntryAttributes {
    /// What has no column of its own.
    var column: [UInt8] {
      var rest = self
      (rest.origin, rest.writerTime) = (nil, 0)
      guard !rest.isEmpty else { return [] }
      var writer = ByteWriter()
      rest.encode(into: &writer)
      return writer.bytes
    }
  }

  extension FeedHead {
    /// Reads the columns of `Statements.head(_:)`.
    init(_ row: inout Row) throws(TidemarkError) {
      let offset = try row.ordered()
      let kind: ChangeKind = try row.bigint() == 0 ? .put : .delete
      let key = try row.bytes()
      let labels = try LabelColumn.decode(try row.bytes())
      let operation = OperationID(replica: try row.replica(), sequence: try row.bits())
      let (commitTime, received, previous) = (try row.bits(), try row.bits(), try row.ordered())
      let bytes = try row.bytes()
      let valueLength = try row.int()
      var attributes = EntryAttributes()
      if !bytes.isEmpty {
        do throws(FormatError) { attributes = try EntryAttributes(decoding: bytes.rawSpan) } catch {
          throw TidemarkError(.damaged, "an entry's attributes cannot be read", cause: error)
        }
      }
      attributes.origin = EntryAttributes.Origin(
        replica: operation.replica.bytes, sequence: operation.sequence)
      attributes.writerTime = commitTime
      self.init(
        offset: offset, kind: kind, key: key, labels: labels, valueLength: valueLength,
        operation: operation, commitTime: commitTime, received: received, attributes: attributes,
        previous: previous)
    }
  }

  extension FeedLease {
    init(_ row: inout Row) throws(TidemarkError) {
      let (expires, readsUntil) = (try row.ordered(), try row.ordered())
      let cursor = FeedPosition(epoch: try row.bits(), offset: try row.ordered())
      self.init()
      (self.expires, self.readsUntil, self.cursor) = (expires, readsUntil, cursor)
      clearedThrough = try row.ordered()
    }

    /// In the order of the columns of `Statements.lease`; nulls for none.
    static func columns(_ lease: FeedLease?) -> [Parameter] {
      guard let lease else { return Array(repeating: .bytea(nil), count: 5) }
      return [
        .ordered(lease.expires), .ordered(lease.readsUntil), .bits(lease.cursor.epoch),
        .ordered(lease.cursor.offset), .ordered(lease.clearedThrough),
      ]
    }
  }
#endif
