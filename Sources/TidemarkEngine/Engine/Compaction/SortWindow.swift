/// Entries of appended segments in memory, gathered in order of sequence, to be sorted by key.
struct SortWindow: Sendable {
  /// The entries; the value of the one that was added last is its caller's to append.
  var bytes: [UInt8] = []
  /// Where each entry begins in `bytes`.
  private var offsets: [UInt32] = []

  /// - Parameter bytes: how many it is to hold, about.
  init(roomFor bytes: Int) { self.bytes.reserveCapacity(bytes) }

  var isEmpty: Bool { offsets.isEmpty }
  /// Bytes that it holds in memory, about, once it is put in order.
  var memoryBytes: Int { bytes.count + offsets.count * 16 }

  /// Adds an entry, behind those of lower sequences.
  mutating func add(
    _ entry: LooseEntry, key: RawSpan, attributes: RawSpan
  ) {
    offsets.append(UInt32(bytes.count))
    entry.encode(to: &bytes)
    bytes.append(copying: key)
    bytes.append(copying: attributes)
  }

  /// Where the entries begin, by key, those of a key by sequence.
  func sorted() -> [UInt32] {
    var numbers = Array(0..<UInt32(offsets.count))
    KeySorter(self).sort(&numbers)
    for i in numbers.indices { numbers[i] = offsets[Int(numbers[i])] }
    return numbers
  }
}

extension SortWindow: NumberedKeys {
  func keyLength(_ number: Int) -> Int {
    (try? Int(bytes.rawSpan.u16(at: Int(offsets[number]) + 6))) ?? 0
  }

  func keyWord(_ number: Int, at depth: Int) -> UInt64 {
    let start = Int(offsets[number])
    let end = start + LooseEntry.headBytes + keyLength(number)
    return bytes.rawSpan.extracting((start + LooseEntry.headBytes)..<end).bigEndianWord(at: depth)
  }
}
