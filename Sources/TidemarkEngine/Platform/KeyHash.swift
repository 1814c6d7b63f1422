// SAFETY: loads are unchecked for speed; each lies within the length that its branch tested.

/// A seeded 64-bit hash for short keys. The index's runs on disk store it, so it never changes.
///
/// A multiply-and-fold hash after wyhash (Wang Yi and others,
/// <https://github.com/wangyi-fudan/wyhash>): 16 bytes at a time, one 64 x 64 -> 128 bit
/// multiplication, both halves folded into the state; the last step takes the last 16 bytes,
/// which may overlap those before. Unlike in wyhash, both factors are masked by numbers that depend
/// on the seed: with a constant mask, whoever chooses the keys can make a factor zero and so
/// make any number of keys collide under every seed.
package enum KeyHash {
  // Primes from wyhash, each of eight bytes with four bits set.
  private static let secret0: UInt64 = 0x2D35_8DCC_AA6C_78A5
  private static let secret1: UInt64 = 0x8BB8_4B93_962E_ACC9
  private static let secret2: UInt64 = 0x4B33_A62E_D433_D4A3
  private static let secret3: UInt64 = 0x4D5A_2DA5_1DE1_AA47

  /// The hash of a key of any length.
  /// - Parameter seed: a number that those who choose the keys do not know.
  @inline(__always)
  package static func hash(_ bytes: RawSpan, seed: UInt64) -> UInt64 {
    let mask = fold(seed ^ secret0, secret1)
    let start = fold(seed ^ secret2, secret3)
    let count = bytes.byteCount
    var state = start
    let a: UInt64
    let b: UInt64
    if count > 16 {
      var offset = 0
      let last = count &- 16
      while offset < last {
        state = fold(unsafe bytes.load64(offset) ^ mask, unsafe bytes.load64(offset &+ 8) ^ state)
        offset &+= 16
      }
      a = unsafe bytes.load64(last)
      b = unsafe bytes.load64(last &+ 8)
    } else if count >= 8 {
      a = unsafe bytes.load64(0)
      b = unsafe bytes.load64(count &- 8)
    } else if count >= 4 {
      a = unsafe UInt64(bytes.load32(0))
      b = unsafe UInt64(bytes.load32(count &- 4))
    } else if count > 0 {
      // First, middle and last byte are all there is of one to three.
      a =
        unsafe UInt64(bytes.load8(0)) << 16 | UInt64(bytes.load8(count >> 1)) << 8
        | UInt64(bytes.load8(count &- 1))
      b = 0
    } else {
      a = 0
      b = 0
    }
    let product = (a ^ mask).multipliedFullWidth(by: b ^ state)
    return fold(product.low ^ secret0 ^ UInt64(truncatingIfNeeded: count), product.high ^ start)
  }

  @inline(__always)
  private static func fold(_ a: UInt64, _ b: UInt64) -> UInt64 {
    let product = a.multipliedFullWidth(by: b)
    return product.low ^ product.high
  }
}
