/// Entries of appended segments in memory, gathered in order of sequence, to be sorted by key; each
/// is encoded as a ``MergeEntry``. An entry is numbered by when it was added.
struct SortWindow: Sendable {
  /// The entries. The caller of `add` appends the value to it before the next `add`.
  var bytes: [UInt8] = []
  /// Where each entry begins in `bytes`.
  private var offsets: [UInt32] = []

  init(roomFor bytes: Int) { self.bytes.reserveCapacity(bytes) }

  var isEmpty: Bool { offsets.isEmpty }
  /// About how many bytes it takes in memory while it is sorted: 16 for the number of an entry.
  var memoryBytes: Int { bytes.count + offsets.count * 16 }

  /// Adds an entry, behind those of lower sequences.
  mutating func add(_ entry: MergeEntry, key: RawSpan, attributes: RawSpan) {
    offsets.append(UInt32(bytes.count))
    entry.encode(to: &bytes)
    bytes.append(copying: key)
    bytes.append(copying: attributes)
  }

  /// Offsets of the entries by key, those of a key by sequence: equal keys keep their order.
  func sorted() -> [UInt32] {
    var numbers = Array(0..<UInt32(offsets.count))
    KeySorter(self).sort(&numbers)
    for i in numbers.indices { numbers[i] = offsets[Int(numbers[i])] }
    return numbers
  }
}

extension SortWindow: NumberedKeys {
  /// The length at offset 6 of the encoded entry, which is always there.
  func keyLength(_ number: Int) -> Int {
    (try? Int(bytes.rawSpan.u16(at: Int(offsets[number]) + 6))) ?? 0
  }

  func keyWord(_ number: Int, at depth: Int) -> UInt64 {
    let start = Int(offsets[number])
    let end = start + MergeEntry.headBytes + keyLength(number)
    return bytes.rawSpan.extracting((start + MergeEntry.headBytes)..<end).bigEndianWord(at: depth)
  }
}
