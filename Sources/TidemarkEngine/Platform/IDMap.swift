/// A hash table from 32-bit ids to small numbers, without removal.
///
/// Ids are counted up by this process or come from a sorted run on disk. Nobody who writes keys can
/// choose them, so the hash needs no seed. Linear probing; the size is a power of two.
struct IDMap {
  /// Id in the upper half, value plus one in the lower, so that zero is an empty place.
  private var entries: [UInt64] = []
  private(set) var count = 0

  var memoryBytes: Int { entries.count * 8 }

  @inline(__always)
  subscript(id: UInt32) -> Int? {
    guard !entries.isEmpty else { return nil }
    let mask = entries.count - 1
    var position = Self.scramble(id) & mask
    while true {
      let entry = entries[position]
      if entry == 0 { return nil }
      if UInt32(truncatingIfNeeded: entry >> 32) == id { return Int(entry & 0xffff_ffff) - 1 }
      position = (position + 1) & mask
    }
  }

  /// Adds an id that the map does not have; a second entry of an id would never be found.
  mutating func insert(_ id: UInt32, _ value: Int) {
    // At least a quarter stays empty: probes end at an empty place.
    if count * 4 >= entries.count * 3 { grow() }
    place(UInt64(id) << 32 | UInt64(value + 1))
    count += 1
  }

  private mutating func place(_ entry: UInt64) {
    let mask = entries.count - 1
    var position = Self.scramble(UInt32(truncatingIfNeeded: entry >> 32)) & mask
    while entries[position] != 0 { position = (position + 1) & mask }
    entries[position] = entry
  }

  private mutating func grow() {
    let old = entries
    entries = [UInt64](repeating: 0, count: max(8, old.count * 2))
    for entry in old where entry != 0 { place(entry) }
  }

  private static func scramble(_ id: UInt32) -> Int {
    Int(truncatingIfNeeded: (UInt64(id) &* 0x9E37_79B9_7F4A_7C15) >> 32)
  }
}
