import Testing

@testable import TidemarkEngine

/// How often the hot cache has what is read, beside a cache of as many entries that gives up the
/// one that was used least recently: the figures of the article "Caching a server's data".
@Suite("The hot cache beside LRU")
struct HotCacheTraceTests {
  /// A cache of so many keys that gives up the one that was used least recently.
  private struct LRU {
    let capacity: Int
    private var uses: [Int: Int] = [:]
    private var queue: [(key: Int, use: Int)] = []
    private var first = 0
    private var use = 0

    init(capacity: Int) { self.capacity = capacity }

    /// - Returns: whether the key was there; it is now.
    mutating func read(_ key: Int) -> Bool {
      use += 1
      let wasThere = uses.updateValue(use, forKey: key) != nil
      queue.append((key, use))
      while uses.count > capacity {
        let (oldest, when) = queue[first]
        first += 1
        if uses[oldest] == when { uses[oldest] = nil }
      }
      return wasThere
    }
  }

  struct Row: Sendable, CustomTestStringConvertible {
    var trace: Trace
    /// Hits in 100 reads.
    var hot: Int
    var lru: Int
    var testDescription: String { trace.rawValue }
  }

  enum Trace: String, Sendable { case zipf, scans, loop, shift }

  private static let limit = 2 << 20
  private static let reads = 120_000

  private static func trace(_ trace: Trace, capacity: Int) -> [Int] {
    var random = CacheRandom(7)
    let keys = capacity * 5
    var weights = (1...keys).map { 1 / Double($0) }
    for rank in 1..<keys { weights[rank] += weights[rank - 1] }
    func draw() -> Int {
      let drawn = Double(random.next() >> 11) / Double(1 << 53) * weights[keys - 1]
      var (low, high) = (0, keys - 1)
      while low < high {
        let middle = (low + high) / 2
        if weights[middle] < drawn { low = middle + 1 } else { high = middle }
      }
      return low
    }
    switch trace {
    case .zipf: return (0..<reads).map { _ in draw() }
    // A scan of twice the cache, of keys that nobody reads else, after each cache's worth of reads.
    case .scans:
      var trace: [Int] = []
      var next = keys
      while trace.count < reads {
        for _ in 0..<capacity { trace.append(draw()) }
        trace += next..<(next + 2 * capacity)
        next += 2 * capacity
      }
      return trace
    // All keys in turn, a fifth more of them than there is room for.
    case .loop: return (0..<reads).map { $0 % (capacity + capacity / 5) }
    // Other keys are the frequent ones after each fifth of the reads.
    case .shift: return (0..<reads).map { draw() + $0 / (reads / 5) * keys }
    }
  }

  @Test(
    "it hits as the article says beside LRU: more where scans and loops pass, less after a shift",
    arguments: [
      Row(trace: .zipf, hot: 79, lru: 78), Row(trace: .scans, hot: 23, lru: 20),
      Row(trace: .loop, hot: 66, lru: 0), Row(trace: .shift, hot: 66, lru: 72),
    ])
  func traces(row: Row) {
    let full = HotCache(limitBytes: Self.limit, seed: 1)
    let value = [UInt8](repeating: 7, count: 250)
    for number in 0..<20_000 { full.put(CacheKeys.key(1_000_000 + number), value, sequence: 1) }
    let capacity = full.count
    let cache = HotCache(limitBytes: Self.limit, seed: 1)
    var lru = LRU(capacity: capacity)
    var hits = (hot: 0, lru: 0)
    let trace = Self.trace(row.trace, capacity: capacity)
    for number in trace {
      let key = CacheKeys.key(number)
      if cache.get(key) != nil { hits.hot += 1 } else { cache.put(key, value, sequence: 1) }
      if lru.read(number) { hits.lru += 1 }
    }
    let percent = { (hits: Int) in (hits * 200 + trace.count) / (2 * trace.count) }
    #expect(percent(hits.hot) == row.hot, "\(capacity) entries")
    #expect(percent(hits.lru) == row.lru)
  }
}
