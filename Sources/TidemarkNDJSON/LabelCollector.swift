internal import TidemarkEngine

/// The labels of one line while it is read: sorted, each once.
///
/// They stay where they are; only their places are sorted. The first bytes of each label travel
/// with its place, which decides nearly every comparison.
struct LabelCollector: Sendable {
  /// Where a label lies.
  struct Place: Sendable {
    /// The first eight bytes as a number that sorts like them, zeros behind a shorter label.
    var prefix: UInt64
    var start: Int
    var count: Int
  }

  /// The labels in byte order.
  private(set) var places: [Place] = []

  init() { places.reserveCapacity(Limits.labelsPerEntry) }

  mutating func removeAll() { places.removeAll(keepingCapacity: true) }

  /// Adds the label at `start`, unless it is there already.
  /// - Returns: false when there are too many.
  mutating func insert(_ start: Int, _ count: Int, in bytes: RawSpan) -> Bool {
    let place = Place(prefix: Self.prefix(start, count, in: bytes), start: start, count: count)
    var position = places.count
    while position > 0 {
      let order = Self.compare(places[position - 1], place, in: bytes)
      if order == 0 { return true }
      if order < 0 { break }
      position -= 1
    }
    guard places.count < Limits.labelsPerEntry else { return false }
    places.append(place)
    var last = places.count - 1
    while last > position {
      places.swapAt(last, last - 1)
      last -= 1
    }
    return true
  }

  private static func compare(_ a: Place, _ b: Place, in bytes: RawSpan) -> Int {
    if a.prefix != b.prefix { return a.prefix < b.prefix ? -1 : 1 }
    if a.count <= 8, b.count <= 8 { return a.count - b.count }
    let x = bytes.extracting(a.start..<a.start + a.count)
    let y = bytes.extracting(b.start..<b.start + b.count)
    return x.compare(to: y)
  }

  private static func prefix(_ start: Int, _ count: Int, in bytes: RawSpan) -> UInt64 {
    var word: UInt64 = 0
    if start <= bytes.byteCount - 8 {
      word = bytes.word(start).byteSwapped
    } else {
      for i in 0..<min(8, count) {
        word |= UInt64((try? bytes.u8(at: start + i)) ?? 0) << (56 - 8 * UInt64(i))
      }
    }
    return count >= 8 ? word : word & ~(UInt64.max >> (8 * UInt64(count)))
  }
}
