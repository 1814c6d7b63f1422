/// Times of single operations, in buckets that are 0.8 % wide at most.
struct Histogram {
  private static let bits = 7
  private var counts = [UInt32](repeating: 0, count: (64 - bits + 1) << bits)
  private(set) var count = 0
  private(set) var largest: UInt64 = 0

  @inline(__always)
  mutating func add(_ time: UInt64) {
    counts[Self.bucket(time)] &+= 1
    count &+= 1
    if time > largest { largest = time }
  }

  mutating func add(_ other: Histogram) {
    for bucket in counts.indices { counts[bucket] += other.counts[bucket] }
    count += other.count
    largest = max(largest, other.largest)
  }

  /// The time that a part of all operations took at most.
  func quantile(_ part: Double) -> UInt64 {
    let wanted = max(1, Int((Double(count) * part).rounded(.up)))
    var sum = 0
    for (bucket, number) in counts.enumerated() {
      sum += Int(number)
      if sum >= wanted { return min(largest, Self.middle(bucket)) }
    }
    return largest
  }

  /// Numbers below 2^bits have buckets of their own; others go by their leading bits.
  @inline(__always)
  private static func bucket(_ time: UInt64) -> Int {
    let excess = 64 - time.leadingZeroBitCount - bits - 1
    guard excess > 0 else { return Int(time) }
    return (excess << bits) + Int(time >> UInt64(excess))
  }

  private static func middle(_ bucket: Int) -> UInt64 {
    guard bucket >= 2 << bits else { return UInt64(bucket) }
    let excess = (bucket >> bits) - 1
    let low = UInt64(bucket - (excess << bits)) << UInt64(excess)
    return low + (UInt64(1) << UInt64(excess)) / 2
  }
}
