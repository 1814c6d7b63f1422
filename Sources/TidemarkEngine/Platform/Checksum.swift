internal import CTidemark

// SAFETY: the C function reads exactly the span's bytes, or 12 of the 16 of two words. Loads below
// are unchecked for speed; each stands behind a comparison of its offset with the span's length.

/// CRC-32C (Castagnoli), as in RFC 3720 appendix B.4.
package enum CRC32C {
  /// - Parameter seed: the checksum of the bytes before these; 0 to begin.
  package static func checksum(_ bytes: RawSpan, seed: UInt32 = 0) -> UInt32 {
    unsafe bytes.withUnsafeBytes { unsafe ctidemark_crc32c(seed, $0.baseAddress, $0.count) }
  }

  /// The checksum of 12 bytes: a u32, then a u64, both little-endian.
  static func checksum(_ first: UInt32, _ second: UInt64, seed: UInt32) -> UInt32 {
    let words = ((UInt64(first) | second &<< 32).littleEndian, (second &>> 32).littleEndian)
    return unsafe withUnsafeBytes(of: words) { unsafe ctidemark_crc32c(seed, $0.baseAddress, 12) }
  }
}

/// XXH64, from the specification by Yann Collet:
/// <https://github.com/Cyan4973/xxHash/blob/dev/doc/xxhash_spec.md>, section "XXH64".
package enum XXH64 {
  private static let prime1: UInt64 = 0x9E37_79B1_85EB_CA87
  private static let prime2: UInt64 = 0xC2B2_AE3D_27D4_EB4F
  private static let prime3: UInt64 = 0x1656_67B1_9E37_79F9
  private static let prime4: UInt64 = 0x85EB_CA77_C2B2_AE63
  private static let prime5: UInt64 = 0x27D4_EB2F_1656_67C5

  package static func hash(_ bytes: RawSpan, seed: UInt64 = 0) -> UInt64 {
    let count = bytes.byteCount
    var offset = 0
    var hash: UInt64
    if count >= 32 {
      hash = stripes(bytes, seed: seed)
      offset = count & ~31
    } else {
      hash = seed &+ prime5
    }
    hash &+= UInt64(truncatingIfNeeded: count)
    while offset &+ 8 <= count {
      hash ^= round(0, unsafe bytes.load64(offset))
      hash = rotate(hash, 27) &* prime1 &+ prime4
      offset &+= 8
    }
    if offset &+ 4 <= count {
      hash ^= unsafe UInt64(bytes.load32(offset)) &* prime1
      hash = rotate(hash, 23) &* prime2 &+ prime3
      offset &+= 4
    }
    while offset < count {
      hash ^= UInt64(unsafe bytes.load8(offset)) &* prime5
      hash = rotate(hash, 11) &* prime1
      offset &+= 1
    }
    hash = (hash ^ (hash >> 33)) &* prime2
    hash = (hash ^ (hash >> 29)) &* prime3
    return hash ^ (hash >> 32)
  }

  /// Runs the four accumulators over all whole stripes of 32 bytes, and merges them.
  private static func stripes(_ bytes: RawSpan, seed: UInt64) -> UInt64 {
    var a = seed &+ prime1 &+ prime2
    var b = seed &+ prime2
    var c = seed
    var d = seed &- prime1
    let end = bytes.byteCount & ~31
    var offset = 0
    while offset < end {
      a = round(a, unsafe bytes.load64(offset))
      b = round(b, unsafe bytes.load64(offset &+ 8))
      c = round(c, unsafe bytes.load64(offset &+ 16))
      d = round(d, unsafe bytes.load64(offset &+ 24))
      offset &+= 32
    }
    var hash = rotate(a, 1) &+ rotate(b, 7) &+ rotate(c, 12) &+ rotate(d, 18)
    hash = merge(hash, a)
    hash = merge(hash, b)
    hash = merge(hash, c)
    return merge(hash, d)
  }

  @inline(__always)
  private static func round(_ accumulator: UInt64, _ lane: UInt64) -> UInt64 {
    rotate(accumulator &+ lane &* prime2, 31) &* prime1
  }

  @inline(__always)
  private static func merge(_ hash: UInt64, _ accumulator: UInt64) -> UInt64 {
    (hash ^ round(0, accumulator)) &* prime1 &+ prime4
  }

  @inline(__always)
  private static func rotate(_ value: UInt64, _ count: UInt64) -> UInt64 {
    (value &<< count) | (value &>> (64 &- count))
  }
}
