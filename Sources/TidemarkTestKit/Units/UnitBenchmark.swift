internal import TidemarkEngine

/// Parts of the engine that can be timed one by one, without a disk, to see which of them a change
/// has made slower and how their costs grow.
///
/// ```swift
/// let work = try UnitBenchmark.indexLookup.prepare(items: 100_000)
/// let start = ContinuousClock.now
/// try work.run()
/// print(start.duration(to: .now) / work.operations)
/// ```
public enum UnitBenchmark: String, CaseIterable, Sendable {
  /// Times the hash of a key of 24 bytes.
  case keyHash
  /// Times the CRC-32C checksum of 4 KiB.
  case crc32c
  /// Times the XXH64 hash of 4 KiB.
  case xxh64
  /// Times the insertion of a new key into the index in memory.
  case indexInsert
  /// Times the lookup of a key in the index in memory.
  case indexLookup
  /// Times the step from one key to the next in the index in memory.
  case indexWalk
  /// Times the insertion of a value of 250 bytes into the hot cache.
  case hotCacheInsert
  /// Times the lookup of a value of 250 bytes in the hot cache.
  case hotCacheHit
  /// Times the addition of an entry with a value of 250 bytes to an uncompressed frame.
  case frameEntry
  /// Times the compression of 4 KiB of records at the level that batches use.
  case compression
  /// Times the decompression of 4 KiB of records.
  case decompression

  /// A prepared benchmark that is ready to be timed; see ``prepare(items:)``.
  public struct Work {
    /// How many operations one call of ``run()`` performs. Divide the time by it.
    public let operations: Int
    fileprivate let body: () throws -> Int

    /// Performs all operations once.
    /// - Returns: a number that depends on every result, so that the compiler cannot remove any.
    /// - Throws: an error when a result is wrong.
    @discardableResult
    public func run() throws -> Int { try body() }
  }

  /// Prepares the data of the benchmark, outside of the timed part.
  /// - Parameter items: how many keys or blocks the benchmark uses.
  public func prepare(items: Int) throws -> Work {
    let items = max(1, items)
    switch self {
    case .keyHash: return keyHash(items)
    case .crc32c: return checksum(items) { Int(CRC32C.checksum($0)) }
    case .xxh64: return checksum(items) { Int(truncatingIfNeeded: XXH64.hash($0)) }
    case .indexInsert:
      return Work(operations: items) { try Self.index(items).liveKeys }
    case .indexLookup: return try indexLookup(items)
    case .indexWalk: return try indexWalk(items)
    case .hotCacheInsert:
      return Work(operations: items) { Self.cache(items).count }
    case .hotCacheHit: return hotCacheHit(items)
    case .frameEntry: return frameEntry(items)
    case .compression: return try compression(items)
    case .decompression: return try decompression(items)
    }
  }

  /// Why a run gave no figure.
  struct WrongResult: Error {}

  private static let seed: UInt64 = 0x7469_6465_6d61_726b

  /// Keys in no order of theirs.
  private static func key(_ number: Int) -> [UInt8] {
    let mixed = UInt64(number) &* 0x9e37_79b9_7f4a_7c15
    return Array("note/\(String(mixed | 1 << 63, radix: 16))/ab".utf8)
  }

  private static func record(_ number: Int) -> [UInt8] {
    let words = "tide mark ebb flow moon shore sand wave".split(separator: " ")
    let text = (0..<24).map { words[(number &* 31 &+ $0 &* ($0 &+ number)) & 7] }
    return Array("{\"id\":\(number),\"text\":\"\(text.joined(separator: " "))\"}".utf8)
  }

  private func keyHash(_ items: Int) -> Work {
    let keys = (0..<min(items, 4096)).map(Self.key)
    return Work(operations: items) {
      var sum: UInt64 = 0
      for number in 0..<items {
        let key = keys[number % keys.count]
        sum &+= KeyHash.hash(key.rawSpan, seed: Self.seed)
      }
      return Int(truncatingIfNeeded: sum)
    }
  }

  private func checksum(_ items: Int, _ sum: @escaping (RawSpan) -> Int) -> Work {
    let block = (0..<4096).map { UInt8(truncatingIfNeeded: $0 &* 131) }
    return Work(operations: items) {
      var total = 0
      for _ in 0..<items { total &+= sum(block.rawSpan) }
      return total
    }
  }

  // MARK: The index

  private static func index(_ items: Int) throws -> Index {
    let index = Index(seed: seed)
    for number in 0..<items {
      let key = key(number)
      try index.upsert(
        key.rawSpan, hash: index.hash(key.rawSpan),
        Slot(sequence: UInt64(number + 1), labelSet: 0, size: SizeClass(bytes: 250)))
    }
    guard index.liveKeys == items else { throw WrongResult() }
    return index
  }

  private func indexLookup(_ items: Int) throws -> Work {
    let index = try Self.index(items)
    let looks = 4096
    let keys = (0..<looks).map { Self.key($0 &* 7919 % items) }
    return Work(operations: looks) {
      var sum = 0
      for key in keys {
        guard let slot = try index.lookup(key.rawSpan, hash: index.hash(key.rawSpan)) else {
          throw WrongResult()
        }
        sum &+= Int(slot.sequence)
      }
      return sum
    }
  }

  private func indexWalk(_ items: Int) throws -> Work {
    let index = try Self.index(items)
    return Work(operations: items) {
      var page = KeyPage()
      var next = KeyBound.start
      var count = 0
      var isDone = false
      while !isDone {
        isDone = try index.page(from: next, upTo: .end, limit: 1024, into: &page)
        count += page.count
        next = page.resumption
      }
      guard count == items else { throw WrongResult() }
      return count
    }
  }

  // MARK: The hot cache

  private static func cache(_ items: Int) -> HotCache {
    let cache = HotCache(limitBytes: items * 400 + 1 << 20, seed: seed)
    let value = [UInt8](repeating: 7, count: 250)
    for number in 0..<items {
      let key = key(number)
      cache.insert(
        key.rawSpan, hash: KeyHash.hash(key.rawSpan, seed: seed), sequence: 1, value: value.rawSpan)
    }
    return cache
  }

  private func hotCacheHit(_ items: Int) -> Work {
    let cache = Self.cache(items)
    let keys = (0..<4096).map { Self.key($0 &* 7919 % items) }
    return Work(operations: keys.count) {
      var sum = 0
      for key in keys {
        let isHit = try cache.read(
          key.rawSpan, hash: KeyHash.hash(key.rawSpan, seed: Self.seed)
        ) { (value, _) throws(TidemarkError) in sum &+= value.byteCount }
        guard isHit else { throw WrongResult() }
      }
      return sum
    }
  }

  // MARK: The log

  private func frameEntry(_ items: Int) -> Work {
    let keys = (0..<1000).map(Self.key)
    let value = [UInt8](repeating: 7, count: 250)
    return Work(operations: items) {
      let codecs = FrameCodecs(contexts: ZstdContexts())
      var output: [UInt8] = []
      var sum = 0
      for first in stride(from: 0, to: items, by: keys.count) {
        var frame = FrameBuilder()
        for number in 0..<min(keys.count, items - first) {
          let entry = FrameBuilder.Entry(
            kind: .put, endsBatch: true, sequence: UInt64(first + number + 1), commitTime: 1)
          let key = keys[number]
          frame.add(
            entry, key: key.rawSpan, value: value.rawSpan, attributes: RawSpan()
          ) { _ in [] }
        }
        output.removeAll(keepingCapacity: true)
        sum += try frame.finish(
          appendingTo: &output, offset: 4096, salt: 1, durableThrough: 0, level: nil,
          codecs: codecs
        ).header.entryCount
      }
      guard sum == items else { throw WrongResult() }
      return sum
    }
  }

  private static func blocks(_ items: Int) -> [[UInt8]] {
    (0..<min(items, 64)).map { block in
      Array((0..<24).flatMap { record(block * 24 + $0) }.prefix(4096))
    }
  }

  private func compression(_ items: Int) throws -> Work {
    let blocks = Self.blocks(items)
    let compressor = ZstdCompressor(level: FrameCodecs.fastLevel)
    return Work(operations: items) {
      var output: [UInt8] = []
      var sum = 0
      for number in 0..<items {
        output.removeAll(keepingCapacity: true)
        let block = blocks[number % blocks.count]
        sum += try compressor.compress(block.rawSpan, appendingTo: &output)
      }
      return sum
    }
  }

  private func decompression(_ items: Int) throws -> Work {
    let compressor = ZstdCompressor(level: FrameCodecs.fastLevel)
    let blocks = Self.blocks(items)
    let stored = try blocks.map { block in
      var output: [UInt8] = []
      try compressor.compress(block.rawSpan, appendingTo: &output)
      return output
    }
    let decompressor = ZstdDecompressor()
    return Work(operations: items) {
      var output: [UInt8] = []
      for number in 0..<items {
        let place = number % blocks.count
        let frame = stored[place]
        try decompressor.decompress(
          frame.rawSpan, into: &output, rawCount: blocks[place].count)
      }
      guard output == blocks[(items - 1) % blocks.count] else { throw WrongResult() }
      return output.count
    }
  }
}
