#if PostgreSQL
  internal import Tidemark
  internal import TidemarkEngine
  internal import TidemarkSyncProtocol
  internal import TidemarkSyncServer

  /// The content beside a feed in PostgreSQL: attachments, and uploads whose changes are not pushed
  /// yet. A part that comes is a row; the last one makes the upload a content, without copying.
  ///
  /// The state of the upload's hash is stored with it, so that any server goes on with it, and none
  /// reads again what it has.
  struct PostgresContents: FeedContents {
    let pool: Pool
    /// The database's number.
    let row: Parameter

    /// Bytes of a row of content; larger parts are divided.
    static let chunkBytes = 256 << 10
    /// Milliseconds for which an upload that has got bytes is not deleted to make room for another.
    private static let undisturbed: Int64 = 60_000
    /// Milliseconds for which an upload without new bytes is kept, and content that no entry names.
    static let uploadKept: Int64 = 7 * 86_400_000
    static let contentKept: Int64 = 86_400_000

    /// Protects nothing by itself: what is held was touched, and stays for a day.
    private struct Hold: Sendable {}

    // MARK: Contents

    func hold(_ id: AttachmentID) throws(TidemarkError) -> (any Sendable)? {
      let rows = try pool.write([ContentStatements.touch(row, .bytea(id.column))])
      return rows?[0].first == nil ? nil : Hold()
    }

    func read(_ id: AttachmentID, from offset: Int, count: Int) throws -> [UInt8]? {
      let rows = try pool.read([
        ContentStatements.chunksOfContent(
          row, .bytea(id.column), .bigint(Int64(offset - Self.chunkBytes)),
          .bigint(Int64(offset + count)))
      ])[0]
      guard rows.first != nil else { return nil }
      return try Self.part(rows, from: offset, count: min(count, Int(id.length) - offset))
    }

    fileprivate static func part(
      _ rows: Rows, from offset: Int, count: Int
    ) throws(TidemarkError) -> [UInt8] {
      var part: [UInt8] = []
      part.reserveCapacity(max(count, 0))
      for var row in rows.all where part.count < count && !row.isNull {
        let (start, bytes) = (try row.int(), try row.bytes())
        let next = offset + part.count
        guard start <= next else { break }
        part += bytes.dropFirst(next - start).prefix(count - part.count)
      }
      guard part.count >= count else {
        throw TidemarkError(.damaged, "PostgreSQL lacks a part of a content")
      }
      return part
    }

    // MARK: Uploads

    /// An upload as its row has it.
    private struct Upload {
      var received: Int
      var hash: SHA256
      /// The number under which its parts are stored.
      var chunks: Int64
    }

    private func upload(_ name: UploadName) throws(TidemarkError) -> Upload? {
      let rows = try pool.read([
        ContentStatements.upload(row, .bytea(name.owner), .bytea(name.id.column))
      ])
      guard var row = rows[0].first else { return nil }
      let (received, state, chunks) = (try row.int(), try row.bytes(), try row.bigint())
      guard let hash = try? SHA256(state: state) else { throw Row.otherType }
      return Upload(received: received, hash: hash, chunks: chunks)
    }

    func take(
      _ bytes: [UInt8], at offset: Int, of name: UploadName, within options: SyncHandler.Options
    ) throws -> Int {
      let known = try upload(name)
      guard !bytes.isEmpty || (name.id.length == 0 && known == nil) else {
        return known?.received ?? 0
      }
      try makeRoom(for: bytes.count, of: name, isNew: known == nil, within: options)
      var upload =
        known ?? Upload(received: 0, hash: SHA256(), chunks: Int64.random(in: 1...Int64.max))
      guard offset == upload.received, offset + bytes.count <= Int(name.id.length) else {
        return upload.received
      }
      upload.hash.add(bytes.rawSpan)
      upload.received += bytes.count
      if upload.received == Int(name.id.length), upload.hash.digest != name.id.hash {
        try drop(name)
        throw PeerError(.malformed, "the uploaded content does not have its hash")
      }
      let starts = stride(from: 0, to: bytes.count, by: Self.chunkBytes)
      let statement = known == nil ? ContentStatements.begin : ContentStatements.advance
      let calls = [
        statement(
          row, .bytea(name.owner), .bytea(name.id.column), .bigint(Int64(offset)),
          .bigint(Int64(upload.received)), .bytea(upload.hash.state), .bigint(upload.chunks)),
        ContentStatements.addChunks(
          row, .bigint(upload.chunks), .bigints(starts.map { Int64(offset + $0) }),
          .byteas(starts.map { Array(bytes[$0...].prefix(Self.chunkBytes)) })),
      ]
      // Where another server has just taken the same part, the sender goes on from there.
      guard try pool.write(calls, guarded: true) != nil else {
        return try self.upload(name)?.received ?? 0
      }
      return upload.received
    }

    /// Deletes uploads that nobody goes on with, those that were left longest first, until more
    /// bytes fit within the bounds.
    private func makeRoom(
      for more: Int, of name: UploadName, isNew: Bool, within options: SyncHandler.Options
    ) throws {
      let rows = try pool.read([ContentStatements.uploads(row)])[0]
      var uploads: [(name: UploadName, received: Int, idle: Int64)] = []
      for var row in rows.all {
        let owner = try row.bytes()
        guard let id = AttachmentID(column: try row.bytes()) else { throw Row.otherType }
        uploads.append((UploadName(id: id, owner: owner), try row.int(), try row.bigint()))
      }
      func isIncomplete(_ upload: (name: UploadName, received: Int, idle: Int64)) -> Bool {
        upload.received < Int(upload.name.id.length)
      }
      // Complete uploads wait for their batch, so their bound is what one batch may refer to.
      let mostOfAll = options.attachmentUploads + options.limits.changes
      var (bytes, all) = (uploads.reduce(0) { $0 + $1.received }, uploads.count)
      var incomplete = uploads.count(where: isIncomplete)
      func isTooMuch() -> Bool {
        bytes + more > options.attachmentUploadBytes
          || isNew && (all >= mostOfAll || incomplete >= options.attachmentUploads)
      }
      for other in uploads where other.name != name {
        let isOld = other.idle > Self.uploadKept
        guard isOld || isTooMuch() && other.idle > Self.undisturbed else { break }
        try drop(other.name)
        bytes -= other.received
        all -= 1
        if isIncomplete(other) { incomplete -= 1 }
      }
      guard !isTooMuch() else {
        throw PeerError(.busy, "there are too many uploads now", retryAfter: .seconds(10))
      }
    }

    fileprivate func drop(_ name: UploadName) throws(TidemarkError) {
      _ = try pool.write([
        ContentStatements.drop(row, .bytea(name.owner), .bytea(name.id.column))
      ])
    }

    func whole(_ name: UploadName, reading most: inout Int) throws -> (any FeedUpload)? {
      guard let upload = try upload(name), upload.received == Int(name.id.length) else {
        return nil
      }
      return Whole(contents: self, name: name, chunks: upload.chunks)
    }

    /// A complete upload.
    private struct Whole: FeedUpload {
      let contents: PostgresContents
      let name: UploadName
      let chunks: Int64

      func content() throws(TidemarkError) -> [UInt8]? {
        let rows = try contents.pool.read([
          ContentStatements.chunks(contents.row, .bigint(chunks))
        ])[0]
        if rows.count == 0, name.id.length > 0 { return nil }
        return try PostgresContents.part(rows, from: 0, count: Int(name.id.length))
      }

      func adopt() throws(TidemarkError) -> any Sendable {
        _ = try contents.pool.write([
          ContentStatements.adopt(contents.row, .bytea(name.owner), .bytea(name.id.column))
        ])
        guard let hold = try contents.hold(name.id) else {
          throw TidemarkError(.closed, "the upload was deleted meanwhile")
        }
        return hold
      }

      func drop() { try? contents.drop(name) }
    }
  }

  extension AttachmentID {
    /// The hash, and the length with its highest byte first.
    var column: [UInt8] {
      hash + (0..<8).map { UInt8(truncatingIfNeeded: length >> (56 - 8 * $0)) }
    }

    init?(column: [UInt8]) {
      guard column.count == SHA256.byteCount + 8 else { return nil }
      self.init(
        hash: Array(column.prefix(SHA256.byteCount)),
        length: column.suffix(8).reduce(0) { $0 << 8 | UInt64($1) })
    }
  }
#endif
