/// Looks at every value that is read: its length, and the index within it. All engines pay the
/// same for it.
struct Check {
  private let values: Values
  private(set) var seen = 0
  private(set) var wrong = 0
  private(set) var bytes = 0

  init(_ values: Values) { self.values = values }

  @inline(__always)
  mutating func see(
    _ key: UnsafeRawPointer, _ value: UnsafeRawPointer?, _ count: Int
  ) {
    seen &+= 1
    bytes &+= count
    guard let value, count >= 40 else {
      wrong &+= 1
      return
    }
    let digits = (key + KeyText.tail).loadUnaligned(as: UInt64.self)
    let stored = (value + Values.idTail).loadUnaligned(as: UInt64.self)
    if digits != stored || count != values.length(KeyText.number(ofDigits: digits)) { wrong &+= 1 }
  }

  /// Counts a key that was read without its value.
  @inline(__always)
  mutating func see(_ key: UnsafeRawPointer, _ count: Int) {
    seen &+= 1
    if count != KeyText.byteCount
      || key.loadUnaligned(as: UInt32.self) != UInt32(littleEndian: 0x6d65_7469)
    {
      wrong &+= 1
    }
  }

  mutating func add(_ other: Check) {
    seen += other.seen
    wrong += other.wrong
    bytes += other.bytes
  }

  /// - Throws: when a value was not the one that belongs to its key, or some were missing.
  func expect(_ count: Int) throws {
    guard wrong == 0 else {
      throw BenchError("\(wrong) of \(seen) values are not what was written")
    }
    guard seen == count else { throw BenchError("\(seen) records were read, not \(count)") }
  }
}
