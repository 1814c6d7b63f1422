// SAFETY: one allocation that grows before it is written; ends are made here alone and never
// lie beyond what was written; the span that `key` gives ends with the next change, which the
// compiler enforces through exclusive access of whoever holds the buffer.

/// The keys of one block of a sorted run, put together one after the other from their coded form,
/// and the block's slots. Used again for block after block.
@safe
final class KeyBuffer {
  private var base: UnsafeMutableRawPointer
  private var capacity = 1024
  private let ends: UnsafeMutablePointer<Int>
  private let slots: UnsafeMutablePointer<Slot>
  private(set) var count = 0

  init() {
    unsafe base = .allocate(byteCount: 1024, alignment: 8)
    unsafe ends = .allocate(capacity: RunLayout.keysPerBlock + 1)
    unsafe ends[0] = 0
    unsafe slots = .allocate(capacity: RunLayout.keysPerBlock)
    let none = Slot(sequence: 0, labelSet: 0, size: .deleted)
    unsafe slots.initialize(repeating: none, count: RunLayout.keysPerBlock)
  }

  deinit {
    unsafe base.deallocate()
    unsafe ends.deallocate()
    unsafe slots.deallocate()
  }

  func removeAll() { count = 0 }

  /// The slot at a position. Only ``load(_:)`` sets slots; `append` leaves them as they were.
  subscript(position: Int) -> Slot {
    @inline(__always)
    get {
      precondition(position >= 0 && position < RunLayout.keysPerBlock)
      return unsafe slots[position]
    }
  }

  /// Takes over the keys and slots of a block, which has at most ``RunLayout/keysPerBlock``.
  func load(_ block: borrowing RunBlock) throws(FormatError) {
    removeAll()
    var walk = block.walk
    for position in 0..<block.count {
      try walk.next()
      append(shared: walk.shared, rest: walk.rest)
      unsafe slots[position] = try block.slot(position)
    }
  }

  /// The length of the last key; 0 if there is none.
  var lastLength: Int { count == 0 ? 0 : unsafe ends[count] - ends[count - 1] }

  /// Adds a key that begins with `shared` bytes of the last one.
  @inline(__always)
  func append(shared: Int, rest: RawSpan) {
    precondition(count < RunLayout.keysPerBlock && shared >= 0 && shared <= lastLength)
    let start = unsafe ends[count]
    let end = start + shared + rest.byteCount
    if end > capacity { grow(end) }
    if shared > 0 {
      unsafe (base + start).copyMemory(from: base + ends[count - 1], byteCount: shared)
    }
    unsafe rest.withUnsafeBytes { bytes in
      if let source = bytes.baseAddress {
        unsafe (base + start + shared).copyMemory(from: source, byteCount: bytes.count)
      }
    }
    count += 1
    unsafe ends[count] = end
  }

  /// The key at a position, good until the buffer changes.
  @_lifetime(borrow self)
  @inline(__always)
  func key(_ position: Int) -> RawSpan {
    precondition(position >= 0 && position < count)
    let start = unsafe ends[position]
    let span = unsafe RawSpan(_unsafeStart: base + start, byteCount: ends[position + 1] - start)
    return unsafe _overrideLifetime(span, borrowing: self)
  }

  private func grow(_ needed: Int) {
    let larger = max(needed, 2 * capacity)
    let new = UnsafeMutableRawPointer.allocate(byteCount: larger, alignment: 8)
    unsafe new.copyMemory(from: base, byteCount: ends[count])
    unsafe base.deallocate()
    unsafe base = new
    capacity = larger
  }
}
