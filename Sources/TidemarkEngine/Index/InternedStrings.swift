/// The byte strings (labels, or sets of labels) whose ids one memtable of the index uses, in
/// memory.
///
/// Finds strings by id and ids by string. A value type: a merge keeps the copy it was given.
struct InternedStrings {
  private struct Entry {
    var id: UInt32
    var offset: Int
    var count: Int
  }

  private let seed: UInt64
  private var bytes: [UInt8] = []
  private var entries: [Entry] = []
  private var byID = IDMap()
  /// Open addressing: upper half of the hash, then the entry's index plus one; a zero cell is
  /// empty. Never full, see ``grow()``, so every search ends.
  private var byContent: [UInt64] = []

  init(seed: UInt64) { self.seed = seed }

  var memoryBytes: Int {
    bytes.count + entries.count * MemoryLayout<Entry>.stride + byID.memoryBytes
      + byContent.count * 8
  }

  /// The string numbered `index` in order of arrival.
  @_lifetime(borrow self)
  @inline(__always)
  private func content(at index: Int) -> RawSpan {
    let entry = entries[index]
    return bytes.rawSpan.extracting(entry.offset..<(entry.offset + entry.count))
  }

  func contains(_ id: UInt32) -> Bool { byID[id] != nil }

  /// Calls `body` with the string of an id; nil if the id is not in here.
  @inline(__always)
  func withString<R>(
    _ id: UInt32, _ body: (RawSpan) throws(IndexError) -> R
  ) throws(IndexError) -> R? {
    guard let index = byID[id] else { return nil }
    return try body(content(at: index))
  }

  /// The id of a string. Inlined: a call on a property of an object would copy the struct first.
  @inline(__always)
  func find(_ content: RawSpan) -> UInt32? {
    guard !byContent.isEmpty else { return nil }
    let hash = KeyHash.hash(content, seed: seed)
    let mask = byContent.count - 1
    var position = Int(truncatingIfNeeded: hash) & mask
    while true {
      let cell = byContent[position]
      if cell == 0 { return nil }
      if cell >> 32 == hash >> 32 {
        let index = Int(cell & 0xffff_ffff) - 1
        if self.content(at: index).isEqual(to: content) { return entries[index].id }
      }
      position = (position + 1) & mask
    }
  }

  /// Adds a string and its id. Neither may be in here, which is not checked.
  mutating func insert(_ content: RawSpan, id: UInt32) {
    if entries.count * 4 >= byContent.count * 3 { grow() }
    let index = entries.count
    entries.append(Entry(id: id, offset: bytes.count, count: content.byteCount))
    bytes.append(copying: content)
    byID.insert(id, index)
    fillCell(index, KeyHash.hash(content, seed: seed))
  }

  /// Puts an entry's index into the first free cell of `byContent` from its hash on.
  private mutating func fillCell(_ index: Int, _ hash: UInt64) {
    let mask = byContent.count - 1
    var position = Int(truncatingIfNeeded: hash) & mask
    while byContent[position] != 0 { position = (position + 1) & mask }
    byContent[position] = (hash >> 32) << 32 | UInt64(index + 1)
  }

  /// Doubles `byContent`, from three quarters full on.
  private mutating func grow() {
    byContent = [UInt64](repeating: 0, count: max(8, byContent.count * 2))
    for index in entries.indices { fillCell(index, KeyHash.hash(content(at: index), seed: seed)) }
  }
}
