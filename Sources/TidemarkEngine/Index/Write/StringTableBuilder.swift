/// Writes the labels, or the sets of labels, that a run of the index names, to be found both ways.
struct StringTableBuilder {
  typealias Sections = (
    offsets: RunLayout.Section, bytes: RunLayout.Section, hash: RunLayout.Section
  )

  private var offsets: [UInt8] = []
  /// The number of a string plus one, by the string's hash; 0 is empty. Linear probing.
  private var table: [UInt32]
  private let seed: UInt64
  private var count = 0
  private var bytes = 0

  init(count: Int, seed: UInt64) {
    self.seed = seed
    // A power of two, at most three quarters full, so that each search meets an empty place.
    var capacity = count == 0 ? 0 : 4
    while capacity * 3 < count * 4 { capacity *= 2 }
    table = [UInt32](repeating: 0, count: capacity)
  }

  /// Adds a string, which is not empty; ids come in ascending order.
  mutating func add(
    _ id: UInt32, _ string: RawSpan, to writer: inout SectionWriter
  ) throws(IndexError) {
    appendOffset(id)
    count += 1
    bytes += string.byteCount
    try writer.append(string)
    let mask = table.count - 1
    var position = Int(truncatingIfNeeded: KeyHash.hash(string, seed: seed)) & mask
    while table[position] != 0 { position = (position + 1) & mask }
    table[position] = UInt32(count)
  }

  /// Ends the section of bytes and writes the two that lead to strings.
  mutating func finish(_ sections: Sections, _ writer: inout SectionWriter) throws(IndexError) {
    writer.end(sections.bytes, count: count)
    // No string has this id: where the last one ends.
    appendOffset(UInt32.max)
    try writer.write(sections.offsets, offsets.rawSpan, count: count)
    var hash = ByteWriter(capacity: 4 * table.count)
    for number in table { hash.u32(number) }
    try writer.write(sections.hash, hash.bytes.rawSpan, count: table.count)
  }

  private mutating func appendOffset(_ id: UInt32) {
    offsets.append(UInt64(id), bytes: 4)
    offsets.append(UInt64(bytes), bytes: RunLayout.offsetBytes)
  }
}
