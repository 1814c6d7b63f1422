/// Byte strings with ids, in memory: what a delta names.
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
  /// Open addressing: upper half of the hash above the entry's index plus one; zero is empty.
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

  /// Calls `body` with the string of an id; nil if there is none.
  @inline(__always)
  func withString<R>(
    _ id: UInt32, _ body: (RawSpan) throws(IndexError) -> R
  ) throws(IndexError) -> R? {
    guard let index = byID[id] else { return nil }
    return try body(content(at: index))
  }

  /// The id of a string; inlined, since a call on a property of an object copies all of this first.
  @inline(__always)
  func find(_ content: RawSpan) -> UInt32? {
    guard !byContent.isEmpty else { return nil }
    let hash = KeyHash.hash(content, seed: seed)
    let mask = byContent.count - 1
    var position = Int(truncatingIfNeeded: hash) & mask
    while true {
      let slot = byContent[position]
      if slot == 0 { return nil }
      if slot >> 32 == hash >> 32 {
        let index = Int(slot & 0xffff_ffff) - 1
        if self.content(at: index).isEqual(to: content) { return entries[index].id }
      }
      position = (position + 1) & mask
    }
  }

  /// Adds a string and an id which are both not in here.
  mutating func insert(_ content: RawSpan, id: UInt32) {
    if entries.count * 4 >= byContent.count * 3 { grow() }
    let index = entries.count
    entries.append(Entry(id: id, offset: bytes.count, count: content.byteCount))
    bytes.append(copying: content)
    byID.insert(id, index)
    place(index, KeyHash.hash(content, seed: seed))
  }

  private mutating func place(_ index: Int, _ hash: UInt64) {
    let mask = byContent.count - 1
    var position = Int(truncatingIfNeeded: hash) & mask
    while byContent[position] != 0 { position = (position + 1) & mask }
    byContent[position] = (hash >> 32) << 32 | UInt64(index + 1)
  }

  private mutating func grow() {
    byContent = [UInt64](repeating: 0, count: max(8, byContent.count * 2))
    for index in entries.indices {
      place(index, KeyHash.hash(content(at: index), seed: seed))
    }
  }
}
