// SAFETY: each part owns one allocation of `room` entries, made and freed here alone, or shares the
// one that is never written when it has no room. Walks start below `capacity`, or at the start, and
// stop at an empty entry; the last entry of a part always is one.

/// The hash table of a memtable: from keys to numbers in its
/// ``SlotStore``.
///
/// Linear probing with the entries kept in order of their tags, split into 256 parts by the hash's
/// high byte. The tag is the low half of the hash, and an entry's home is its tag scaled to the
/// capacity, so entries stand in tag order all through: a search ends at the first greater tag,
/// growing is one pass in order, and capacity need not double. Only one part grows at a time, so no
/// put waits for a large table.
///
/// Ordered linear probing: Amble and Knuth, "Ordered hash tables", 1974.
@safe
final class SlotTable {
  @unsafe
  private struct Part {
    /// An entry: tag in the upper half, slot number plus one in the lower; zero is empty.
    var entries: UnsafeMutablePointer<UInt64>
    /// Homes lie below this.
    var capacity: Int
    /// Entries in the allocation; those from `capacity` on take what runs over.
    var room: Int
    var count: Int
  }

  private static let partCount = 256
  private static let firstCapacity = 8
  private let parts: UnsafeMutablePointer<Part>
  /// One empty entry, which all parts without entries share instead of an allocation each.
  private let nothing: UnsafeMutablePointer<UInt64>
  private(set) var memoryBytes = 0

  init() {
    unsafe parts = .allocate(capacity: Self.partCount)
    unsafe nothing = .allocate(capacity: 1)
    unsafe nothing.initialize(to: 0)
    let empty = unsafe Part(entries: nothing, capacity: 0, room: 0, count: 0)
    unsafe parts.initialize(repeating: empty, count: Self.partCount)
  }

  deinit {
    for i in 0..<Self.partCount where unsafe parts[i].room > 0 {
      unsafe parts[i].entries.deallocate()
    }
    unsafe parts.deallocate()
    unsafe nothing.deallocate()
  }

  /// Finds a key's slot number; nil if the key is not in the table.
  /// - Parameter store: where keys of the numbers in this table stand.
  @inline(__always)
  func find(_ hash: UInt64, _ key: RawSpan, in store: SlotStore) -> Int? {
    let part = unsafe parts + Int(hash >> 56)
    let tag = hash & 0xffff_ffff
    var entry = unsafe part.pointee.entries + Self.home(tag, part.pointee.capacity)
    while true {
      let value = unsafe entry.pointee
      let found = value >> 32
      if value == 0 || found > tag { return nil }
      if found == tag {
        let number = Int(value & 0xffff_ffff) - 1
        if store.key(number).isEqual(to: key) { return number }
      }
      unsafe entry += 1
    }
  }

  /// Asks the processor for the memory of a key's entry, or where it would be.
  @inline(__always)
  func prefetch(_ hash: UInt64) {
    let part = unsafe parts + Int(hash >> 56)
    unsafe TidemarkEngine.prefetch(
      part.pointee.entries + Self.home(hash & 0xffff_ffff, part.pointee.capacity))
  }

  /// The first slot number with a key's tag: nearly always the key's. For prefetching only.
  @inline(__always)
  func probableNumber(_ hash: UInt64) -> Int? {
    let part = unsafe parts + Int(hash >> 56)
    let tag = hash & 0xffff_ffff
    var entry = unsafe part.pointee.entries + Self.home(tag, part.pointee.capacity)
    while unsafe entry.pointee != 0, unsafe entry.pointee >> 32 < tag { unsafe entry += 1 }
    let value = unsafe entry.pointee
    return value != 0 && value >> 32 == tag ? Int(value & 0xffff_ffff) - 1 : nil
  }

  /// Adds a number whose key is not in the table yet.
  func insert(_ hash: UInt64, _ number: Int) {
    let part = unsafe parts + Int(hash >> 56)
    let value = (hash & 0xffff_ffff) << 32 | UInt64(number + 1)
    if unsafe part.pointee.count * 5 >= part.pointee.capacity * 4 { unsafe grow(part) }
    while unsafe !place(value, in: part.pointee) { unsafe grow(part) }
    unsafe part.pointee.count += 1
  }

  /// Where the search for a tag begins.
  @inline(__always)
  private static func home(_ tag: UInt64, _ capacity: Int) -> Int {
    Int(truncatingIfNeeded: (tag &* UInt64(truncatingIfNeeded: capacity)) &>> 32)
  }

  /// Puts an entry at its place; false if the part's last entry, where searches end, would be used.
  @unsafe
  private func place(_ value: UInt64, in part: Part) -> Bool {
    var position = unsafe Self.home(value >> 32, part.capacity)
    while true {
      let other = unsafe part.entries[position]
      if other == 0 || other > value { break }
      position += 1
    }
    var free = position
    while unsafe part.entries[free] != 0 { free += 1 }
    guard unsafe free < part.room - 1 else { return false }
    if free > position {
      unsafe (part.entries + position + 1).update(
        from: part.entries + position, count: free - position)
    }
    unsafe part.entries[position] = value
    return true
  }

  /// Gives a part half as much capacity again; entries keep their order, so one pass does it.
  @unsafe
  private func grow(_ part: UnsafeMutablePointer<Part>) {
    let old = unsafe part.pointee
    var capacity = unsafe max(Self.firstCapacity, old.capacity * 3 / 2)
    while true {
      var new = unsafe Self.makePart(capacity: capacity)
      var next = 0
      var fits = true
      for i in unsafe 0..<old.room {
        let value = unsafe old.entries[i]
        if value == 0 { continue }
        next = unsafe max(next, Self.home(value >> 32, new.capacity))
        if unsafe next >= new.room - 1 {
          fits = false
          break
        }
        unsafe new.entries[next] = value
        next += 1
      }
      if fits {
        unsafe new.count = old.count
        unsafe part.pointee = new
        if unsafe old.room > 0 { unsafe old.entries.deallocate() }
        unsafe memoryBytes += (new.room - old.room) * 8
        return
      }
      unsafe new.entries.deallocate()
      capacity *= 2
    }
  }

  private static func makePart(capacity: Int) -> Part {
    let room = capacity + max(4, capacity >> 3) + 1
    let entries = UnsafeMutablePointer<UInt64>.allocate(capacity: room)
    unsafe entries.initialize(repeating: 0, count: room)
    return unsafe Part(entries: entries, capacity: capacity, room: room, count: 0)
  }
}
