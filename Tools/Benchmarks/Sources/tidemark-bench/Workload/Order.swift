import Foundation

/// Which record is next; made before the clock runs.
enum Order {
  /// A part of a seeded permutation of all indices: random, and none twice within `n`.
  static func shuffled(_ n: Int, count: Int, seed: UInt64) -> [UInt32] {
    var random = SeededRandom(seed: seed)
    // A multiplication by a number that has no divisor in common with 2^k permutes 0..<2^k, and so
    // does xor by a shifted copy; what falls outside is drawn again by walking on.
    let bits = max(2, n.bitWidth - (n - 1).leadingZeroBitCount)
    let mask = (UInt64(1) << UInt64(bits)) - 1
    let multipliers = (0..<3).map { _ in random.next() | 1 }
    let shift = UInt64(bits / 2)
    func step(_ number: UInt64) -> UInt64 {
      var number = number
      for multiplier in multipliers {
        number = (number &* multiplier) & mask
        number ^= number >> shift
      }
      return number
    }
    return (0..<count).map { place in
      var number = step(UInt64(place % n))
      while number >= UInt64(n) { number = step(number) }
      return UInt32(number)
    }
  }

  /// Indices by Zipf's law, scattered over all keys, as YCSB draws them (Gray et al., "Quickly
  /// generating billion-record synthetic databases", 1994).
  static func zipf(_ n: Int, count: Int, theta: Double, seed: UInt64) -> [UInt32] {
    var zeta = 0.0
    for rank in 1...n { zeta += pow(Double(rank), -theta) }
    let alpha = 1 / (1 - theta)
    let two = 1 + pow(0.5, theta)
    let eta = (1 - pow(2 / Double(n), 1 - theta)) / (1 - two / zeta)
    var random = SeededRandom(seed: seed)
    return (0..<count).map { _ in
      let chance = random.fraction()
      let mass = chance * zeta
      let rank =
        mass < 1
        ? 0 : mass < two ? 1 : min(n - 1, Int(Double(n) * pow(eta * chance - eta + 1, alpha)))
      return UInt32(mixed(UInt64(rank)) % UInt64(n))
    }
  }
}
