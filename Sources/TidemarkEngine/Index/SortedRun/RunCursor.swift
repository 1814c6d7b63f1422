// SAFETY: keys lie in a buffer that the cursor keeps; a span ends before the next call that
// decodes, since nobody keeps one over a step of the walk.

/// Walks keys of a sorted run by ordinal, which is a key's rank in byte
/// order: all keys of a range, or the union of some labels' posting lists. For one thread.
///
/// A walk over lists puts a key together only when it is asked for; one over all, block by block.
final class RunCursor {
  /// How many keys ahead of the present one the processor is asked for a key's block.
  private static let keysAhead = 6

  private let run: SortedRun
  private let descending: Bool
  private let range: Range<Int>
  /// Whether the cursor visits all keys of the range; else only those in `lists`.
  let isAll: Bool
  private var lists: [PostingCursor] = []
  /// The ordinal that the cursor stands at; nil at the end.
  private(set) var ordinal: Int?

  /// The first keys of `block`; all of them, with their slots, if `isAll`.
  private let buffer = KeyBuffer()
  private var block = -1
  /// Where in the block the key behind the last one in `buffer` stands.
  private var nextKeyOffset = 0

  /// A cursor over a range of keys.
  convenience init(all run: SortedRun, _ range: KeyRange) throws(IndexError) {
    try self.init(run, range, isAll: true)
    let range = self.range
    if !range.isEmpty { ordinal = descending ? range.upperBound - 1 : range.lowerBound }
  }

  /// A cursor over the keys of a range that stand in the posting lists of some labels.
  /// - Parameter former: whether keys that have lost a label are visited, too.
  convenience init(
    _ run: SortedRun, labels: [UInt32], former: Bool, _ range: KeyRange
  ) throws(IndexError) {
    try self.init(run, range, isAll: false)
    for label in labels {
      guard let label = try run.label(label) else { continue }
      for list in former ? [label.current, label.former] : [label.current] {
        let cursor = try PostingCursor(list, self.range, descending: descending)
        if cursor.ordinal != nil { lists.append(cursor) }
      }
    }
    chooseOrdinal()
  }

  private init(_ run: SortedRun, _ range: KeyRange, isAll: Bool) throws(IndexError) {
    self.run = run
    self.isAll = isAll
    descending = range.descending
    let first = try run.rank(range.lower)
    self.range = first..<max(first, try run.rank(range.upper))
  }

  @inline(__always)
  func advance() throws(IndexError) {
    guard let current = ordinal else { return }
    if isAll {
      let next = descending ? current - 1 : current + 1
      ordinal = range.contains(next) ? next : nil
    } else {
      try advanceLists(current)
    }
  }

  /// Calls `body` with the keys from here on, up to the first for which it returns false; the
  /// cursor then stands at that key. Does nothing where posting lists choose the keys.
  @inline(__always)
  func takeWhile(_ body: (RawSpan, Slot) throws(IndexError) -> Bool) throws(IndexError) {
    guard isAll else { return }
    let buffer = buffer
    while let ordinal {
      let number = ordinal / RunLayout.keysPerBlock
      if number != block { try decode(number) }
      let position = ordinal % RunLayout.keysPerBlock
      guard try body(buffer.key(position), buffer[position]) else { return }
      try advance()
    }
  }

  /// The slot of the key that the cursor stands at; nil at the end.
  @inline(__always)
  func slot() throws(IndexError) -> Slot? {
    guard let ordinal else { return nil }
    let number = ordinal / RunLayout.keysPerBlock
    if isAll {
      if number != block { try decode(number) }
      return buffer[ordinal % RunLayout.keysPerBlock]
    }
    return try run.withBlock(number) { (block) throws(FormatError) in
      try block.slot(ordinal % RunLayout.keysPerBlock)
    }
  }

  /// The key at an ordinal, good until the next call. Decodes its block up to there.
  @_lifetime(borrow self)
  func key(_ ordinal: Int) throws(IndexError) -> RawSpan {
    let number = ordinal / RunLayout.keysPerBlock
    let position = ordinal % RunLayout.keysPerBlock
    if number != block { try decode(number) }
    if position >= buffer.count { try decode(upTo: position) }
    let buffer = self.buffer
    return unsafe _overrideLifetime(buffer.key(position), borrowing: self)
  }

  /// Goes to a block; puts its keys together at once if all are visited.
  private func decode(_ number: Int) throws(IndexError) {
    // Stays so on an error: the buffer must not pass for the block's.
    block = -1
    buffer.removeAll()
    if isAll {
      try run.withBlock(number) { (block) throws(FormatError) in try buffer.load(block) }
    }
    block = number
  }

  /// Puts the keys of the present block together up to a position.
  private func decode(upTo position: Int) throws(IndexError) {
    let run = self.run
    let coded = try run.block(block)
    do throws(FormatError) {
      var walk =
        buffer.count == 0
        ? coded.walk : coded.walk(from: nextKeyOffset, previousLength: buffer.lastLength)
      let end = min(position, coded.count - 1)
      while buffer.count <= end {
        try walk.next()
        buffer.append(shared: walk.shared, rest: walk.rest)
      }
      nextKeyOffset = walk.end
    } catch { throw run.blockDamage(block) }
  }

  private func advanceLists(_ current: Int) throws(IndexError) {
    if lists.count == 1 {
      try lists[0].advance()
      ordinal = lists[0].ordinal
      // Keys of a label lie all over the sorted run.
      if let far = lists[0].ordinal(after: 2 * Self.keysAhead) { run.prefetchOffset(of: far) }
      if let near = lists[0].ordinal(after: Self.keysAhead) { run.prefetchBlock(of: near) }
      return
    }
    for i in lists.indices where lists[i].ordinal == current { try lists[i].advance() }
    chooseOrdinal()
  }

  /// Goes to the first ordinal, in walk order, that any list stands at. Lists may share keys.
  private func chooseOrdinal() {
    ordinal = nil
    for list in lists {
      guard let head = list.ordinal else { continue }
      let best = ordinal ?? head
      ordinal = descending ? max(head, best) : min(head, best)
    }
  }
}
