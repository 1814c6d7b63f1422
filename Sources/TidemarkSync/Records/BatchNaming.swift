internal import TidemarkSyncProtocol

/// Draws the ids of batches: of a random seed and the batch's number. Every session draws a seed,
/// and draws another one before it gives a number a second time: what has the same number and id is
/// the same batch.
struct BatchNaming {
  private(set) var seed: UInt64 = 0
  private var last: UInt64 = .max

  /// The id of a batch that is being formed; another one each time.
  /// - Parameter random: draws a seed.
  mutating func next(_ number: UInt64, _ random: () -> UInt64) -> BatchID {
    if number <= last { seed = random() }
    last = number
    return BatchID(seed, number)
  }
}

extension BatchID {
  /// The id that a seed gives a number.
  init(_ seed: UInt64, _ number: UInt64) {
    var bits = seed ^ number &* 0x9e37_79b9_7f4a_7c15
    bits = (bits ^ bits >> 30) &* 0xbf58_476d_1ce4_e5b9
    bits = (bits ^ bits >> 27) &* 0x94d0_49bb_1331_11eb
    // The id of the empty batch in its place, the opposite, is nobody else's then.
    self.init((bits ^ bits >> 31) | 1)
  }

  /// The id of the empty batch that takes this one's place.
  var ofEmpty: BatchID { BatchID(~bits) }
}
