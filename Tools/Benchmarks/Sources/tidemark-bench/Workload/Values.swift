/// JSON documents, the same for everybody, made from their index alone.
///
/// Every value begins with its index and its revision at fixed places, so that a reader can check
/// it without knowing which revision is stored: `{"id":"000000123456","rev":"00000007",`.
struct Values: Sendable {
  /// How long values are on average.
  let mean: Int
  /// Real documents to wrap in place of invented ones.
  let documents: Documents?

  static let idTail = 11
  private static let head = Array(#"{"id":"000000000000","rev":"00000000","#.utf8)

  init(mean: Int, documents: Documents? = nil) {
    self.mean = mean
    self.documents = documents
  }

  /// A value's length, whatever its revision.
  @inline(__always)
  func length(_ index: Int) -> Int {
    if let documents { return Self.head.count + 7 + documents.length(index) }
    let spread = UInt64(mean / 8)
    let hash = UInt64(truncatingIfNeeded: index) &* 0x9e37_79b9_7f4a_7c15
    return mean - Int(spread / 2) + Int(((hash >> 32) &* spread) >> 32)
  }

  /// Writes a value; there has to be room for ``length(_:)`` bytes.
  /// - Returns: how many bytes it has.
  func write(_ index: Int, revision: Int, to bytes: UnsafeMutableRawPointer) -> Int {
    let count = length(index)
    var pen = Pen(bytes: bytes, end: count)
    pen.add(Self.head)
    KeyText.writeDigits(index, count: 12, to: bytes + 7)
    KeyText.writeDigits(revision, count: 8, to: bytes + 28)
    if let documents {
      pen.add(Array(#""doc":"#.utf8))
      documents.write(index, to: bytes + pen.place)
      pen.place = count - 1
      pen.add(UInt8(ascii: "}"))
      return count
    }
    var random = SeededRandom(seed: UInt64(index))
    if count >= 170 { describe(&pen, &random) }
    pen.add(Self.text)
    while pen.place < count - 2 {
      // Frequent words are frequent: a product of chances leans to the front.
      let lean = random.below(Words.common.count) * random.below(1024)
      // Words come in phrases, two or three of them at a time.
      let place = lean >> 10
      for word in place..<min(Words.common.count, place + 2 + (lean & 1)) {
        pen.add(Words.common[word])
        pen.add(UInt8(ascii: " "))
      }
    }
    pen.place = count - 2
    pen.add(Self.end)
    return count
  }

  private static let text = Array(#""text":""#.utf8)
  private static let end = Array(#""}"#.utf8)
  private static let name = Array(#""name":""#.utf8)
  private static let city = Array(#"","city":""#.utf8)
  private static let status = Array(#"","status":""#.utf8)
  private static let created = Array(#"","created":"2026-"#.utf8)
  private static let price = Array(#":00Z","price":"#.utf8)

  private func describe(_ pen: inout Pen, _ random: inout SeededRandom) {
    pen.add(Self.name)
    pen.add(Words.first[random.below(Words.first.count)])
    pen.add(UInt8(ascii: " "))
    pen.add(Words.last[random.below(Words.last.count)])
    pen.add(Self.city)
    pen.add(Words.cities[random.below(Words.cities.count)])
    pen.add(Self.status)
    pen.add(Words.states[random.below(Words.states.count)])
    pen.add(Self.created)
    pen.add(1 + random.below(12), digits: 2)
    pen.add(UInt8(ascii: "-"))
    pen.add(1 + random.below(28), digits: 2)
    pen.add(UInt8(ascii: "T"))
    pen.add(random.below(24), digits: 2)
    pen.add(UInt8(ascii: ":"))
    pen.add(random.below(60), digits: 2)
    pen.add(Self.price)
    pen.add(1000 + random.below(9000), digits: 4)
    pen.add(UInt8(ascii: ","))
  }

  /// Writes up to an end, and drops what is beyond it.
  private struct Pen {
    let bytes: UnsafeMutableRawPointer
    let end: Int
    var place = 0

    init(bytes: UnsafeMutableRawPointer, end: Int) {
      self.bytes = bytes
      self.end = end
    }

    mutating func add(_ word: [UInt8]) {
      let count = min(word.count, end - place)
      guard count > 0 else { return }
      word.withUnsafeBytes { source in
        if let start = source.baseAddress {
          (bytes + place).copyMemory(from: start, byteCount: count)
        }
      }
      place += count
    }

    mutating func add(_ byte: UInt8) {
      guard place < end else { return }
      bytes.storeBytes(of: byte, toByteOffset: place, as: UInt8.self)
      place += 1
    }

    mutating func add(_ number: Int, digits: Int) {
      guard place + digits <= end else { return }
      KeyText.writeDigits(number, count: digits, to: bytes + place)
      place += digits
    }
  }
}
