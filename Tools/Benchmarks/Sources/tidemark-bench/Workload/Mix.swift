/// A number's bits mixed, so that neighbours have nothing in common (SplitMix64, Sebastiano Vigna).
@inline(__always)
func mixed(_ number: UInt64) -> UInt64 {
  var bits = number &+ 0x9e37_79b9_7f4a_7c15
  bits = (bits ^ (bits >> 30)) &* 0xbf58_476d_1ce4_e5b9
  bits = (bits ^ (bits >> 27)) &* 0x94d0_49bb_1331_11eb
  return bits ^ (bits >> 31)
}

/// Repeatable chance.
struct SeededRandom: RandomNumberGenerator {
  private var state: UInt64

  init(seed: UInt64) { state = mixed(seed) }

  mutating func next() -> UInt64 {
    state &+= 0x9e37_79b9_7f4a_7c15
    return mixed(state)
  }

  /// A number below a bound.
  mutating func below(_ bound: Int) -> Int {
    Int(((next() >> 32) &* UInt64(bound)) >> 32)
  }

  /// From 0 up to, and without, 1.
  mutating func fraction() -> Double { Double(next() >> 11) * 0x1p-53 }
}
