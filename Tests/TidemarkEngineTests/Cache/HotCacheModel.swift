@testable import TidemarkEngine

/// SplitMix64 (Steele, Lea, Flood 2014): the same numbers for the same seed.
struct CacheRandom: RandomNumberGenerator {
  var state: UInt64

  init(_ seed: UInt64) { state = seed }

  mutating func next() -> UInt64 {
    state &+= 0x9E37_79B9_7F4A_7C15
    var z = state
    z = (z ^ (z >> 30)) &* 0xBF58_476D_1CE4_E5B9
    z = (z ^ (z >> 27)) &* 0x94D0_49BB_1331_11EB
    return z ^ (z >> 31)
  }

  mutating func below(_ bound: Int) -> Int { Int(next() % UInt64(bound)) }
}

extension HotCache {
  func hash(_ key: [UInt8]) -> UInt64 { KeyHash.hash(key.rawSpan, seed: seed) }

  /// A copy of what is kept of a key.
  func get(_ key: [UInt8], hash: UInt64? = nil) -> (value: [UInt8], sequence: UInt64)? {
    var found: (value: [UInt8], sequence: UInt64)?
    _ = try? read(key.rawSpan, hash: hash ?? self.hash(key)) { value, sequence in
      found = ([UInt8](copying: value), sequence)
    }
    return found
  }

  func put(_ key: [UInt8], _ value: [UInt8], sequence: UInt64, hash: UInt64? = nil) {
    insert(
      key.rawSpan, hash: hash ?? self.hash(key), sequence: sequence, value: value.rawSpan)
  }

  func drop(_ key: [UInt8], hash: UInt64? = nil) {
    remove(key.rawSpan, hash: hash ?? self.hash(key))
  }
}

enum CacheKeys {
  /// A key of a few bytes that ends in a number.
  static func key(_ number: Int) -> [UInt8] {
    [UInt8](repeating: 0x6b, count: 1 + number % 21) + Array(String(number).utf8)
  }

  /// Bytes that tell which key and sequence they belong to, throughout.
  static func value(_ number: Int, _ sequence: UInt64, count: Int) -> [UInt8] {
    var random = CacheRandom(UInt64(number) &* 0x1_0001 &+ sequence)
    var bytes: [UInt8] = []
    bytes.reserveCapacity(count + 8)
    while bytes.count < count {
      var word = random.next()
      for _ in 0..<8 {
        bytes.append(UInt8(truncatingIfNeeded: word))
        word >>= 8
      }
    }
    bytes.removeLast(bytes.count - count)
    return bytes
  }
}
