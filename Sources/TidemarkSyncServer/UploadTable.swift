package import TidemarkEngine
internal import TidemarkSyncProtocol

/// A part of a large value, which a feed keeps as a record until the change comes that has it.
///
/// The record's key:
/// ```
/// 16 bytes  the replica
/// u64, u64  low and high half of the value's name
/// u32       length of the value
/// u32       how many bytes come before the part
/// u32       length of the part
/// ```
struct UploadPart: Sendable {
  var upload: UploadTable.Name
  var offset: Int
  var length: Int

  var key: [UInt8] {
    var writer = ByteWriter(capacity: 44)
    writer.raw(upload.replica.bytes)
    writer.u64(upload.blob.low)
    writer.u64(upload.blob.high)
    for number in [upload.blob.length, offset, length] { writer.u32(UInt32(number)) }
    return writer.bytes
  }
}

extension UploadPart {
  /// - Returns: nil for what is no part's key.
  init?(key: [UInt8]) {
    var reader = ByteReader(key.rawSpan)
    guard let bytes = try? reader.array(ReplicaID.byteCount), let low = try? reader.u64(),
      let high = try? reader.u64(), let whole = try? reader.u32(), let offset = try? reader.u32(),
      let length = try? reader.u32(), reader.remaining == 0
    else { return nil }
    let blob = BlobID(low: low, high: high, length: Int(whole))
    upload = UploadTable.Name(replica: ReplicaID(padding: bytes), blob: blob)
    self.offset = Int(offset)
    self.length = Int(length)
  }
}

/// The large values of which a feed has parts, and whose changes it does not have yet.
package struct UploadTable: Sendable {
  struct Name: Sendable, Hashable {
    var replica: ReplicaID
    var blob: BlobID
  }

  struct Upload: Sendable {
    var name: Name
    /// The keys of its parts' records, which follow one another from the beginning.
    var keys: [[UInt8]] = []
    /// The length of these parts.
    var received = 0
    /// When a part came last, in milliseconds since 1970.
    var touched: UInt64 = 0
  }

  private var rows: [Name: Upload] = [:]
  /// The length of all parts together.
  private(set) var bytes = 0
  /// Records of no use: parts behind a gap, which a failure left.
  var strays: [[UInt8]] = []

  package init() {}

  /// Finds the parts that a feed has.
  package init(_ feed: any Feed) throws(TidemarkError) {
    var parts: [UploadPart] = []
    for key in feed.recordKeys(of: .feedUpload) {
      if let part = UploadPart(key: key) { parts.append(part) } else { strays.append(key) }
    }
    for part in parts.sorted(by: { $0.offset < $1.offset }) {
      guard part.offset == self[part.upload]?.received ?? 0 else {
        strays.append(part.key)
        continue
      }
      // The log's clock may be ahead; and a part that cannot be read stops nobody else.
      let time = (try? feed.recordTime(.feedUpload, key: part.key)) ?? feed.now
      add(part, at: min(time, feed.now))
    }
  }

  subscript(_ name: Name) -> Upload? { rows[name] }

  /// Takes note of a part that the feed has got.
  mutating func add(_ part: UploadPart, at now: Timestamp) {
    var upload = rows[part.upload] ?? Upload(name: part.upload)
    upload.keys.append(part.key)
    upload.received += part.length
    upload.touched = max(upload.touched, now.sinceEpoch)
    rows[part.upload] = upload
    bytes += part.length
  }

  mutating func remove(_ upload: Upload) {
    guard let gone = rows.removeValue(forKey: upload.name) else { return }
    bytes -= gone.received
  }

  /// Uploads that nobody has gone on with since, the longest idle first.
  func untouched(since time: UInt64, but name: Name? = nil) -> [Upload] {
    rows.values.filter { $0.touched < time && $0.name != name }
      .sorted { $0.touched < $1.touched }
  }
}
