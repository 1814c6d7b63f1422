import Testing
import TidemarkEngine

@Suite struct ChecksumTests {
  @Test("CRC-32C gives the published check value")
  func crcCheckValue() {
    let bytes = Array("123456789".utf8)
    #expect(CRC32C.checksum(bytes.rawSpan) == 0xE306_9283)
    #expect(CRC32C.checksum([UInt8]().rawSpan) == 0)
  }

  @Test("CRC-32C of parts in turn is that of the whole, at every length and alignment")
  func crcContinues() {
    let bytes = (0..<100).map { UInt8(truncatingIfNeeded: $0 &* 37 &+ 11) }
    for cut in 0...bytes.count {
      let head = CRC32C.checksum(Array(bytes[..<cut]).rawSpan)
      let whole = CRC32C.checksum(Array(bytes[cut...]).rawSpan, seed: head)
      #expect(whole == bitwiseCRC32C(bytes), "cut at \(cut)")
    }
  }

  @Test("XXH64 gives the published values")
  func xxh64Vectors() {
    #expect(XXH64.hash([UInt8]().rawSpan) == 0xEF46_DB37_51D8_E999)
    #expect(XXH64.hash(Array("abc".utf8).rawSpan) == 0x44BC_2CF5_AD77_0999)
    #expect(XXH64.hash(Array("a".utf8).rawSpan) == 0xD24E_C4F1_A98C_6E5B)
    let pangram = Array("Nobody inspects the spammish repetition".utf8)
    #expect(XXH64.hash(pangram.rawSpan) == 0xFBCE_A83C_8A37_8BF1)
  }

  @Test("XXH64 gives the values of the reference's self-check, with and without a seed")
  func xxh64SelfCheck() {
    // The generator and the expected values are those of xxHash's own sanity check.
    let prime32: UInt64 = 2_654_435_761
    let prime64: UInt64 = 11_400_714_785_074_694_797
    var generator = prime32
    var bytes: [UInt8] = []
    for _ in 0..<222 {
      bytes.append(UInt8(generator >> 56))
      generator &*= prime64
    }
    let expected: [(Int, UInt64, UInt64)] = [
      (0, 0, 0xEF46_DB37_51D8_E999), (0, prime32, 0xAC75_FDA2_929B_17EF),
      (1, 0, 0xE934_A84A_DB05_2768), (1, prime32, 0x5014_6076_43A9_B4C3),
      (14, 0, 0x8282_DCC4_994E_35C8), (14, prime32, 0xC3BD_6BF6_3DEB_6DF0),
      (222, 0, 0xB641_AE8C_B691_C174), (222, prime32, 0x20CB_8AB7_AE10_C14A),
    ]
    for (count, seed, hash) in expected {
      #expect(XXH64.hash(Array(bytes[..<count]).rawSpan, seed: seed) == hash, "\(count) bytes")
    }
  }

  /// The definition, bit by bit.
  private func bitwiseCRC32C(_ bytes: [UInt8]) -> UInt32 {
    var crc: UInt32 = 0xFFFF_FFFF
    for byte in bytes {
      crc ^= UInt32(byte)
      for _ in 0..<8 { crc = (crc >> 1) ^ (crc & 1 == 1 ? 0x82F6_3B78 : 0) }
    }
    return ~crc
  }
}
