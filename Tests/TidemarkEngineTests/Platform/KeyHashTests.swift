import Testing
import TidemarkEngine

@Suite struct KeyHashTests {
  @Test("the key hash never changes, since sorted runs store it")
  func frozenValues() {
    // Computed once by an independent implementation; a change here is a change of format.
    let expected: [(Int, UInt64)] = [
      (0, 0xAAD2_4A99_043B_100D), (1, 0xA885_F5D6_5371_3EBC), (3, 0x1723_036C_634D_475E),
      (4, 0x6F6A_1EBF_F662_E109), (7, 0x6895_34CB_49F6_71F8), (8, 0x434A_8326_185A_24C9),
      (16, 0x6D54_CF86_9A8D_54FB), (17, 0x0011_E68F_9495_6A13), (24, 0xB3D9_4F5F_AFE5_37EC),
      (32, 0x6FD6_B750_8D18_BBE9), (33, 0x20FE_2563_3BCA_01A3), (100, 0x0160_A137_A39B_EAD7),
    ]
    for (count, hash) in expected {
      let key = (0..<count).map { UInt8(truncatingIfNeeded: $0 &* 7 &+ 1) }
      #expect(KeyHash.hash(key.rawSpan, seed: 0x0123_4567_89AB_CDEF) == hash, "\(count) bytes")
    }
  }

  @Test("every bit of a key and of the seed changes about half of the hash's bits")
  func avalanche() {
    for count in [1, 4, 8, 16, 17, 24, 33] {
      var generator = SplitMix(state: UInt64(count))
      let rounds = 200
      for bit in 0..<(count * 8 + 64) {
        var changed = 0
        for _ in 0..<rounds {
          var key = (0..<count).map { _ in UInt8(truncatingIfNeeded: generator.next()) }
          var seed = generator.next()
          let before = KeyHash.hash(key.rawSpan, seed: seed)
          if bit < count * 8 {
            key[bit / 8] ^= 1 << UInt8(bit % 8)
          } else {
            seed ^= 1 << UInt64(bit - count * 8)
          }
          changed += (before ^ KeyHash.hash(key.rawSpan, seed: seed)).nonzeroBitCount
        }
        let mean = Double(changed) / Double(rounds)
        #expect(mean > 29 && mean < 35, "\(count) bytes, bit \(bit): \(mean) bits changed")
      }
    }
  }

  @Test("counting keys spread evenly over buckets, by low bits and by high bits")
  func spread() {
    let keys = 100_000
    let buckets = 1 << 10
    for shift: UInt64 in [0, 27, 54] {
      var counts = [Int](repeating: 0, count: buckets)
      for i in 0..<keys {
        let key = Array("user/\(1_000_000_000 + i)".utf8)
        counts[Int((KeyHash.hash(key.rawSpan, seed: 7) >> shift) & UInt64(buckets - 1))] += 1
      }
      let mean = Double(keys) / Double(buckets)
      let chi = counts.reduce(0.0) { $0 + (Double($1) - mean) * (Double($1) - mean) / mean }
      // 1023 degrees of freedom: mean 1023, standard deviation 45.
      #expect(chi > 750 && chi < 1300, "shift \(shift): chi squared \(chi)")
    }
  }

  @Test("bytes that cancel a constant mask of wyhash do not make keys collide")
  func noBlindSpot() {
    // wyhash masks a key's words with these; a word equal to one makes its product zero.
    let secrets: [UInt64] = [
      0x2D35_8DCC_AA6C_78A5, 0x8BB8_4B93_962E_ACC9, 0x4B33_A62E_D433_D4A3,
      0x4D5A_2DA5_1DE1_AA47,
    ]
    for secret in secrets {
      var hashes = Set<UInt64>()
      for i in 0..<1000 as Range<UInt64> {
        var writer = ByteWriter()
        writer.u64(secret)
        writer.u64(i)
        writer.u64(secret)
        writer.u64(secret)
        hashes.insert(KeyHash.hash(writer.bytes.rawSpan, seed: 42))
      }
      #expect(hashes.count == 1000)
    }
  }

  @Test("keys that differ only by length or by trailing zeros hash differently")
  func lengths() {
    var hashes = Set<UInt64>()
    for count in 0..<200 {
      hashes.insert(KeyHash.hash([UInt8](repeating: 0, count: count).rawSpan, seed: 1))
    }
    #expect(hashes.count == 200)
  }
}

/// The SplitMix64 generator: runs the same way on every machine.
struct SplitMix: RandomNumberGenerator {
  var state: UInt64

  mutating func next() -> UInt64 {
    state &+= 0x9E37_79B9_7F4A_7C15
    var z = state
    z = (z ^ (z >> 30)) &* 0xBF58_476D_1CE4_E5B9
    z = (z ^ (z >> 27)) &* 0x94D0_49BB_1331_11EB
    return z ^ (z >> 31)
  }
}
