/// The writes of a kill campaign's child, which its parent therefore expects: the same for both,
/// from the seed alone.
struct KillWork {
  /// Writes that are committed together.
  struct Unit {
    var keys: [String]
    var values: [[UInt8]]
    /// Whether the child waits until it is durable.
    var isDurable: Bool
  }

  let seed: UInt64

  private static func mix(_ number: UInt64) -> UInt64 {
    var z = number &+ 0x9e37_79b9_7f4a_7c15
    z = (z ^ (z >> 30)) &* 0xbf58_476d_1ce4_e5b9
    z = (z ^ (z >> 27)) &* 0x94d0_49bb_1331_11eb
    return z ^ (z >> 31)
  }

  /// The unit whose first write takes a sequence; every put makes an entry, so they are dense.
  func unit(at sequence: UInt64) -> Unit {
    let chance = Self.mix(seed ^ Self.mix(sequence))
    let count = chance % 7 == 0 ? 2 + Int(chance >> 8 % 9) : 1
    var unit = Unit(keys: [], values: [], isDurable: chance >> 40 % 5 == 0)
    for index in 0..<count {
      let own = Self.mix(chance &+ UInt64(index))
      let length = own % 50 == 0 ? Int(own >> 16 % 60_000) : Int(own >> 16 % 400)
      unit.keys.append("key \(own >> 40 % 700)")
      unit.values.append(
        (0..<length).map { UInt8(truncatingIfNeeded: own >> (UInt64($0) % 57)) ^ UInt8($0 & 0x3f) })
    }
    return unit
  }

  /// The contents of every key after a sequence; nil when that lies inside a unit.
  func state(after sequence: UInt64) -> [String: [UInt8]]? {
    var state: [String: [UInt8]] = [:]
    var next: UInt64 = 1
    while next <= sequence {
      let unit = unit(at: next)
      for (key, value) in zip(unit.keys, unit.values) { state[key] = value }
      next += UInt64(unit.keys.count)
    }
    return next == sequence + 1 ? state : nil
  }
}
