internal import TidemarkEngine

extension UseOrder {
  private static let version: UInt8 = 1

  /// The name of the file that keeps the order of a cache.
  static func fileName(_ prefix: [UInt8]) -> String {
    let hash = String(XXH64.hash(prefix.rawSpan), radix: 16)
    return "cache-" + String(repeating: "0", count: 16 - hash.count) + hash
  }

  /// The order as it is kept beside the log.
  ///
  /// ```
  /// u8      version, 1
  /// varint  length of the prefix, the prefix
  /// varint  count; per entry, the one that was used least recently first:
  ///   zigzag  sequence less that of the entry before
  ///   varint  bytes of key and value
  ///   zigzag  milliseconds of the last use less those of the entry before
  ///   varint  how often it was read
  /// ```
  func encoded(_ prefix: [UInt8]) -> [UInt8] {
    var writer = ByteWriter(capacity: 32 + prefix.count + count * 12)
    writer.u8(Self.version)
    writer.varint(prefix.count)
    writer.raw(prefix)
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
  /// The entries that are still there, the one that was used least recently first.
  private(set) var uses: [UseOrder.Use] = []
  /// The highest sequence that was listed.
  private(set) var through: UInt64 = 0

  /// - Parameters:
  ///   - prefix: the cache's.
  ///   - isPresent: whether an entry is there; others take no memory.
  /// - Returns: nil where the bytes are of another cache, or no order.
  init?(decoding bytes: RawSpan, of prefix: [UInt8], isPresent: (UInt64) -> Bool) {
    do {
      var reader = ByteReader(bytes)
      guard try reader.u8() == 1,
        try reader.array(try reader.varint(atMost: Limits.keyBytes)) == prefix
      else { return nil }
      // An entry takes four bytes at least.
      let count = try reader.varint(atMost: reader.remaining / 4)
      var (sequence, time): (UInt64, Int64) = (0, 0)
      for _ in 0..<count {
        sequence = sequence &+ UInt64(bitPattern: try reader.zigzag())
        let length = try reader.varint(atMost: Limits.keyBytes + Limits.valueBytes)
        time = time &+ (try reader.zigzag())
        var use = UseOrder.Use(sequence: sequence, bytes: length, time: time)
        use.count = UInt32(try reader.varint(atMost: Int(UInt32.max)))
        through = max(through, sequence)
        if isPresent(sequence) { uses.append(use) }
      }
    } catch { return nil }
  }
}
