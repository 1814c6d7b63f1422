package final class HotCache: Sendable {
  private let cache: ClockCache<[UInt8], ([UInt8], UInt64)>
  package let seed: UInt64
  package init(limitBytes: Int, seed: UInt64) { cache = ClockCache(limitBytes: limitBytes); self.seed = seed }
  package func withValue<R, E: Error>(_ key: RawSpan, hash: UInt64, _ body: (RawSpan, UInt64) throws(E) -> R) throws(E) -> R? {
    guard let v = cache.value(for: [UInt8](copying: key)) else { return nil }
    return try body(v.0.rawSpan, v.1)
  }
  package func insert(_ key: RawSpan, hash: UInt64, sequence: UInt64, value: RawSpan) {}
  package func remove(_ key: RawSpan, hash: UInt64) {}
  package var statistics: (hits: UInt64, misses: UInt64) { (0, 0) }
  package func removeAll() { cache.removeAll() }
  package var bytes: Int { cache.bytes }
}
