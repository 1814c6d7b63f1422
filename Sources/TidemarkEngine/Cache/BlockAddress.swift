/// Where in the log something stands: segment and offset. An older copy of the store may give out
/// a segment's id once more; the salt tells the two apart.
package struct BlockAddress: CacheAddress {
  var segmentID: UInt64
  var salt: UInt32
  var offset: UInt32
  /// Tells the stores of a shared cache apart: segments of two may have the same numbers.
  var store: UInt32 = 0

  /// For tables in memory. Nobody chooses offsets, so that it is not seeded.
  package var hash: UInt64 {
    let segment = segmentID ^ (UInt64(store) &<< 32)
    let mixed = (segment &* 0x9e37_79b9_7f4a_7c15) ^ UInt64(offset) ^ (UInt64(salt) &<< 32)
    let product = mixed.multipliedFullWidth(by: 0xd6e8_feb8_6659_fd93)
    return product.high ^ product.low
  }
}
