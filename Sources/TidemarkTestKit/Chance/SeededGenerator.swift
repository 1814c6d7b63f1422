/// A generator of numbers that look like chance and repeat for the same seed.
///
/// The numbers stay the same on every platform and in every version, so that a seed which a
/// failing test printed finds the same failure anywhere. Xoshiro256\*\* by Blackman and Vigna,
/// its state filled by SplitMix64; the bounded numbers are Lemire's. Not for secrets.
public struct SeededGenerator: RandomNumberGenerator, Sendable, Hashable {
  private var a: UInt64
  private var b: UInt64
  private var c: UInt64
  private var d: UInt64

  /// Creates a generator of random numbers that repeat.
  /// - Parameter seed: any number; equal seeds give equal sequences.
  public init(seed: UInt64) {
    var state = seed
    a = Self.splitMix(&state)
    b = Self.splitMix(&state)
    c = Self.splitMix(&state)
    d = Self.splitMix(&state)
  }

  private static func splitMix(_ state: inout UInt64) -> UInt64 {
    state &+= 0x9e37_79b9_7f4a_7c15
    var z = state
    z = (z ^ (z >> 30)) &* 0xbf58_476d_1ce4_e5b9
    z = (z ^ (z >> 27)) &* 0x94d0_49bb_1331_11eb
    return z ^ (z >> 31)
  }

  /// Returns the next 64 random bits.
  public mutating func next() -> UInt64 {
    let product = b &* 5
    let result = ((product << 7) | (product >> 57)) &* 9
    let shifted = b << 17
    c ^= a
    d ^= b
    b ^= c
    a ^= d
    c ^= shifted
    d = (d << 45) | (d >> 19)
    return result
  }

  /// Returns a random number from 0 to `bound` - 1, all equally likely; 0 if `bound` is not
  /// positive.
  public mutating func int(below bound: Int) -> Int {
    guard bound > 1 else { return 0 }
    let limit = UInt64(bound)
    var product = next().multipliedFullWidth(by: limit)
    if product.low < limit {
      let threshold = (0 &- limit) % limit
      while product.low < threshold { product = next().multipliedFullWidth(by: limit) }
    }
    return Int(product.high)
  }

  /// Returns a random number in a range, all equally likely; the lower bound if the range is empty.
  public mutating func int(in range: Range<Int>) -> Int {
    range.lowerBound + int(below: range.count)
  }

  /// Returns a random number in a range, both ends included, all equally likely.
  public mutating func int(in range: ClosedRange<Int>) -> Int {
    range.lowerBound + int(below: range.count)
  }

  /// Returns true with a probability from 0 (never) to 1 (always).
  public mutating func chance(_ probability: Double) -> Bool {
    Double(next() >> 11) * 0x1p-53 < probability
  }

  /// Returns one of the elements at random; nil if there is none.
  public mutating func pick<C: RandomAccessCollection>(_ elements: C) -> C.Element? {
    guard !elements.isEmpty else { return nil }
    return elements[elements.index(elements.startIndex, offsetBy: int(below: elements.count))]
  }

  /// Puts the elements of an array into a random order.
  public mutating func shuffle<T>(_ elements: inout [T]) {
    for last in stride(from: elements.count - 1, to: 0, by: -1) {
      elements.swapAt(last, int(below: last + 1))
    }
  }

  /// Returns `count` random bytes.
  public mutating func bytes(_ count: Int) -> [UInt8] {
    var result: [UInt8] = []
    result.reserveCapacity(max(0, count))
    while result.count < count {
      var word = next()
      for _ in 0..<min(8, count - result.count) {
        result.append(UInt8(truncatingIfNeeded: word))
        word >>= 8
      }
    }
    return result
  }
}
