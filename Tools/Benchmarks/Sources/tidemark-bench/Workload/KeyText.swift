/// Keys: `item/` and twelve digits.
enum KeyText {
  static let byteCount = 17
  /// Where the last eight digits stand.
  static let tail = 9
  static let prefix = "item/"

  static func write(_ index: Int, to bytes: UnsafeMutableRawPointer) {
    for (place, byte) in prefix.utf8.enumerated() {
      bytes.storeBytes(of: byte, toByteOffset: place, as: UInt8.self)
    }
    writeDigits(index, count: 12, to: bytes + 5)
  }

  @inline(__always)
  static func writeDigits(_ number: Int, count: Int, to bytes: UnsafeMutableRawPointer) {
    var rest = UInt64(number)
    var place = count - 1
    while place >= 0 {
      let (quotient, digit) = rest.quotientAndRemainder(dividingBy: 10)
      bytes.storeBytes(of: UInt8(48 &+ digit), toByteOffset: place, as: UInt8.self)
      rest = quotient
      place -= 1
    }
  }

  /// The number that eight digits say, all at once: pairs, then fours, then all eight.
  @inline(__always)
  static func number(ofDigits digits: UInt64) -> Int {
    var bits = UInt64(littleEndian: digits) &- 0x3030_3030_3030_3030
    bits = (bits &* 10) &+ (bits >> 8)
    let low = (bits & 0x0000_00ff_0000_00ff) &* 0x000f_4240_0000_0064
    let high = ((bits >> 16) & 0x0000_00ff_0000_00ff) &* 0x0000_2710_0000_0001
    return Int(truncatingIfNeeded: ((low &+ high) >> 32) & 0xffff_ffff)
  }
}

/// The key of a loop over indices, written anew for each.
struct KeyBuffer: ~Copyable {
  let bytes: UnsafeMutableRawPointer

  init() {
    bytes = .allocate(byteCount: 24, alignment: 8)
    KeyText.write(0, to: bytes)
  }

  @inline(__always)
  func key(_ index: Int) -> UnsafeRawBufferPointer {
    KeyText.writeDigits(index, count: 12, to: bytes + 5)
    return UnsafeRawBufferPointer(start: bytes, count: KeyText.byteCount)
  }

  deinit { bytes.deallocate() }
}
