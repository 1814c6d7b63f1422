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
struct UploadPart: Sendable, Hashable {
  var replica: ReplicaID
  var blob: BlobID
  var offset: Int
  var length: Int

  var name: [UInt8] {
    var writer = ByteWriter(capacity: 44)
    writer.raw(replica.bytes)
    writer.u64(blob.low)
    writer.u64(blob.high)
    for number in [blob.length, offset, length] { writer.u32(UInt32(number)) }
    return writer.bytes
  }
}

extension UploadPart {
  /// - Returns: nil for what is no part's name.
  init?(name: [UInt8]) {
    var reader = ByteReader(name.rawSpan)
    guard let bytes = try? reader.array(ReplicaID.byteCount), let low = try? reader.u64(),
      let high = try? reader.u64(), let whole = try? reader.u32(), let offset = try? reader.u32(),
      let length = try? reader.u32(), reader.remaining == 0
    else { return nil }
    self.init(
      replica: ReplicaID(padding: bytes), blob: BlobID(low: low, high: high, length: Int(whole)),
      offset: Int(offset), length: Int(length))
  }
}

/// The large values of which a feed has parts, and whose changes it does not have yet.
package struct UploadTable: Sendable {
  struct Name: Sendable, Hashable {
    var replica: ReplicaID
    var blob: BlobID
  }

  struct Upload: Sendable, Hashable {
    var name: Name
    /// In their order, one behind the other from the beginning.
    var parts: [UploadPart] = []
    /// When a part came last, in milliseconds since 1970.
    var touched: UInt64

    var received: Int { parts.last.map { $0.offset + $0.length } ?? 0 }
    /// The names of the records.
    var names: [[UInt8]] { parts.map(\.name) }
  }

  private var rows: [Name: Upload] = [:]
  /// The length of all parts together.
  private(set) var bytes = 0
  /// Records of no use: parts behind a gap, which a failure left.
  private(set) var strays: [[UInt8]] = []

  package init() {}

  /// Finds the parts that a feed has.
  package init(_ feed: any Feed) throws(TidemarkError) {
    var parts: [UploadPart] = []
    for name in feed.recordKeys(of: .feedUpload) {
      if let part = UploadPart(name: name) { parts.append(part) } else { strays.append(name) }
    }
    for part in parts.sorted(by: { $0.offset < $1.offset }) {
      let name = Name(replica: part.replica, blob: part.blob)
      let received = self[name]?.received ?? 0
      if received == part.offset {
        // The log's clock may be ahead; and a part that cannot be read stops nobody else.
        let time = (try? feed.recordTime(.feedUpload, key: part.name)) ?? feed.now
        add(part, at: min(time, feed.now))
      } else {
        strays.append(part.name)
      }
    }
  }

  subscript(_ name: Name) -> Upload? { rows[name] }

  /// Takes note of a part that the feed has got.
  mutating func add(_ part: UploadPart, at now: Timestamp) {
    let name = Name(replica: part.replica, blob: part.blob)
    var upload = rows[name] ?? Upload(name: name, touched: 0)
    upload.parts.append(part)
    upload.touched = max(upload.touched, now.sinceEpoch)
    rows[name] = upload
    bytes += part.length
  }

  mutating func remove(_ upload: Upload) {
    guard let gone = rows.removeValue(forKey: upload.name) else { return }
    bytes -= gone.received
  }

  mutating func dropStrays() { strays = [] }

  /// Uploads that nobody has gone on with since, the longest idle first.
  func untouched(since time: UInt64, but name: Name? = nil) -> [Upload] {
    rows.values.filter { $0.touched < time && $0.name != name }
      .sorted { $0.touched < $1.touched }
  }
}
