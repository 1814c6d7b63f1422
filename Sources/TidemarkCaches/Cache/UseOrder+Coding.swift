internal import TidemarkEngine

/// The rules and the counts of a cache, as they stand beside the log in front of its order of use.
///
/// ```
/// u8      version, 2
/// varint  length of the prefix, the prefix
/// varint  milliseconds of the policy's age
/// varint  milliseconds of its longest staleness and one; 0 for none
/// varint  its capacity and one; 0 for none
/// varint  its bytes and one; 0 for none
/// varint  how many counts; as many varints, see `CacheCounts.all`
/// ```
struct SavedCache: Sendable, Hashable {
  private static let version: UInt8 = 2

  var prefix: [UInt8]
  var policy: CachePolicy
  var counts = CacheCounts()

  func encode(into writer: inout ByteWriter) {
    writer.u8(Self.version)
    writer.blob(prefix)
    writer.varint(Self.milliseconds(policy.maxAge))
    writer.varint(policy.maxStale.map { Self.milliseconds($0) + 1 } ?? 0)
    writer.varint(policy.capacity.map { UInt64(max(0, $0)) + 1 } ?? 0)
    writer.varint(policy.bytes.map { UInt64(max(0, $0)) + 1 } ?? 0)
    writer.varint(CacheCounts.all.count)
    for count in CacheCounts.all { writer.varint(UInt64(max(0, counts[keyPath: count]))) }
  }

  private static func milliseconds(_ duration: Duration) -> UInt64 {
    UInt64(clamping: max(0, min(Int64(clamping: duration.wholeMilliseconds), Int64.max - 1)))
  }
}

extension SavedCache {
  init(_ reader: inout ByteReader) throws(FormatError) {
    guard try reader.u8() == Self.version else { throw FormatError("an order of another version") }
    prefix = try reader.blob(atMost: Limits.keyBytes)
    policy = CachePolicy(maxAge: .milliseconds(Int64(clamping: try reader.varint())))
    let stale = try reader.varint()
    policy.maxStale = stale == 0 ? nil : .milliseconds(Int64(clamping: stale - 1))
    let (capacity, bytes) = (try reader.varint(), try reader.varint())
    policy.capacity = capacity == 0 ? nil : Int(clamping: capacity - 1)
    policy.bytes = bytes == 0 ? nil : Int(clamping: bytes - 1)
    let listed = try reader.varint(atMost: 64)
    for index in 0..<listed {
      // Sums of what was counted since must not overflow.
      let value = min(Int(clamping: try reader.varint()), Int.max / 2)
      if index < CacheCounts.all.count { counts[keyPath: CacheCounts.all[index]] = value }
    }
  }
}

extension UseOrder {
  /// The files of all orders are named so.
  fileprivate static let filePrefix = "cache-"

  /// The name of the file that keeps the order of a cache.
  static func fileName(_ prefix: [UInt8]) -> String {
    let hash = String(XXH64.hash(prefix.rawSpan), radix: 16)
    return filePrefix + String(repeating: "0", count: 16 - hash.count) + hash
  }

  /// The order as it is kept beside the log.
  ///
  /// ```
  ///         the cache, see `SavedCache`
  /// varint  count; per entry, the one that was used least recently first:
  ///   zigzag  sequence less that of the entry before
  ///   varint  bytes of key and value
  ///   zigzag  milliseconds of the last use less those of the entry before
  ///   varint  how often it was read
  /// ```
  func encoded(_ cache: SavedCache) -> [UInt8] {
    var writer = ByteWriter(capacity: 96 + cache.prefix.count + count * 12)
    cache.encode(into: &writer)
    writer.varint(count)
    var before = Use(sequence: 0, bytes: 0, time: 0)
    forEach { use in
      writer.zigzag(Int64(bitPattern: use.sequence &- before.sequence))
      writer.varint(use.bytes)
      writer.zigzag(use.time &- before.time)
      writer.varint(UInt64(use.count))
      before = use
      return true
    }
    return writer.bytes
  }
}

/// The order of a cache as it was kept beside the log.
struct SavedOrder {
  /// The cache whose it is.
  let cache: SavedCache
  /// The entries that are still there, the one that was used least recently first.
  private(set) var uses: [UseOrder.Use] = []
  /// The highest sequence that was listed.
  private(set) var through: UInt64 = 0

  /// - Parameters:
  ///   - prefix: the cache's; nil for that of any.
  ///   - isPresent: whether an entry is there; others take no memory.
  /// - Returns: nil where the bytes are of another cache, or no order.
  init?(decoding bytes: RawSpan, of prefix: [UInt8]?, isPresent: (UInt64) -> Bool) {
    do {
      var reader = ByteReader(bytes)
      cache = try SavedCache(&reader)
      guard prefix == nil || cache.prefix == prefix else { return nil }
      // An entry takes four bytes at least.
      let count = try reader.varint(atMost: reader.remaining / 4)
      var (sequence, time): (UInt64, Int64) = (0, 0)
      for _ in 0..<count {
        sequence = sequence &+ UInt64(bitPattern: try reader.zigzag())
        let length = try reader.varint(atMost: Limits.attachmentBytes)
        time = time &+ (try reader.zigzag())
        let count = UInt32(try reader.varint(atMost: Int(UInt32.max)))
        through = max(through, sequence)
        guard isPresent(sequence) else { continue }
        uses.append(UseOrder.Use(sequence: sequence, bytes: length, time: time, count: count))
      }
    } catch { return nil }
  }

  /// The orders of all caches of a store, as far as they can be read.
  /// - Parameters:
  ///   - most: how many are read at most.
  ///   - withUses: whether the entries are wanted, too.
  static func all(
    _ writer: LogWriter, most: Int = .max, withUses: Bool
  ) throws(TidemarkError) -> [SavedOrder] {
    var orders: [SavedOrder] = []
    for name in try HintFile.names(writer) where name.hasPrefix(UseOrder.filePrefix) {
      guard orders.count < most else { break }
      guard let bytes = HintFile(writer, name: name).read(),
        let order = SavedOrder(decoding: bytes.rawSpan, of: nil, isPresent: { _ in withUses })
      else { continue }
      orders.append(order)
    }
    return orders
  }
}
