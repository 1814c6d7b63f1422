/// Writes the labels or the sets of labels of an image: those in use under their ids.
struct StringTableBuilder {
  private var offsets: [UInt8] = []
  private var free: [UInt32] = []
  private var table: [UInt32]
  private let seed: UInt64
  private var count = 0
  private var bytes = 0

  /// A table for at most `used` strings that are not empty.
  init(used: Int, seed: UInt64) {
    self.seed = seed
    var capacity = used == 0 ? 0 : 4
    while capacity * 3 < used * 4 { capacity *= 2 }
    table = [UInt32](repeating: 0, count: capacity)
  }

  /// Adds the string of the next id; empty if the id is not in use.
  mutating func add(
    _ string: RawSpan, to writer: inout SectionWriter
  ) throws(IndexError) {
    offsets.append(u40: bytes)
    let id = count
    count += 1
    guard !string.isEmpty else {
      free.append(UInt32(id))
      return
    }
    bytes += string.byteCount
    try writer.append(string)
    let mask = table.count - 1
    var position = Int(truncatingIfNeeded: KeyHash.hash(string, seed: seed)) & mask
    while table[position] != 0 { position = (position + 1) & mask }
    table[position] = UInt32(id + 1)
  }

  /// Ends the strings and writes what leads to them.
  mutating func finish(
    _ sections:
      (
        offsets: ImageLayout.Section, bytes: ImageLayout.Section, hash: ImageLayout.Section,
        free: ImageLayout.Section
      ),
    _ writer: inout SectionWriter
  ) throws(IndexError) {
    writer.end(sections.bytes, count: count)
    offsets.append(u40: bytes)
    try writer.write(sections.offsets, offsets.rawSpan, count: count)
    try writer.begin()
    try writer.append(table)
    writer.end(sections.hash, count: table.count)
    try writer.begin()
    try writer.append(free)
    writer.end(sections.free, count: free.count)
  }
}

extension SectionWriter {
  /// Appends numbers of four bytes.
  fileprivate mutating func append(_ numbers: [UInt32]) throws(IndexError) {
    var piece = ByteWriter(capacity: 4096)
    for number in numbers {
      piece.u32(number)
      if piece.count == 4096 {
        try append(piece.bytes.rawSpan)
        piece.bytes.removeAll(keepingCapacity: true)
      }
    }
    try append(piece.bytes.rawSpan)
  }
}
