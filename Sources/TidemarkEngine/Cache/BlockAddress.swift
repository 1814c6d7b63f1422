/// The place of a block in the log, as the key of a ``ClockCache``: segment and offset.
package struct BlockAddress: CacheAddress {
  var segmentID: UInt64
  /// The segment's, random: a store that was restored from a copy gives out ids of segments again.
  var salt: UInt32
  var offset: UInt32
  /// Tells the stores of a shared cache apart: segments of two may have the same ids.
  var store: UInt32 = 0

  /// Not seeded: no user of the store chooses offsets, so nobody can make them collide.
  package var hash: UInt64 {
    let segment = segmentID ^ (UInt64(store) &<< 32)
    let mixed = (segment &* 0x9e37_79b9_7f4a_7c15) ^ UInt64(offset) ^ (UInt64(salt) &<< 32)
    let product = mixed.multipliedFullWidth(by: 0xd6e8_feb8_6659_fd93)
    return product.high ^ product.low
  }
}
