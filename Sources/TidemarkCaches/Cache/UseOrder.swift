/// The entries of a cache in the order of their last use.
///
/// Each use is one more turn at the end of a list; the turn that the entry had before counts no
/// more. So a use touches the entry alone, where a linked list has its neighbours far off in memory
/// to change. Once most turns count no more the others move up.
///
/// An entry takes some 90 bytes, whatever its key.
struct UseOrder: Sendable {
  struct Use: Sendable, Hashable {
    /// The newest entry of the key in the log.
    var sequence: UInt64
    /// Milliseconds since 1970 of its last use.
    var time: Int64
    /// How often it was read.
    var count: UInt32
    /// Bytes of key and value.
    var bytes: Int
    /// How long it is valid; nil while nobody has looked.
    var validity: Validity?

    init(sequence: UInt64, bytes: Int, time: Int64, count: UInt32 = 0) {
      (self.sequence, self.bytes, self.time, self.count) = (sequence, bytes, time, count)
    }
  }

  /// The fields that each use changes, apart from the rest: so most rows stay in the CPU cache.
  private struct Row {
    var sequence: UInt64
    var time: Int64
    var count: UInt32
    /// The entry's turn, counted from the first of the list; -1 for an entry that is gone.
    var turn: Int32
  }

  /// Both by place.
  private var rows: [Row] = []
  private var facts: [(bytes: Int, validity: Validity?)] = []
  private var free: [Int32] = []
  private var places = PlaceTable()
  /// The place of an entry for each use.
  private var turns: [Int32] = []
  /// The first turn that counts.
  private var first = 0
  /// A sum over what was read ahead, so that those reads are not left out.
  private var touched = 0
  /// Bytes of all entries.
  private(set) var bytes = 0

  var count: Int { places.count }

  /// The entry that was used least recently.
  var last: Use? { first < turns.count ? use(at: turns[first]) : nil }

  subscript(sequence: UInt64) -> Use? { place(of: sequence).map(use) }

  private func place(of sequence: UInt64) -> Int32? {
    places.find(sequence) { rows[Int($0)].sequence == sequence }
  }

  private func use(at place: Int32) -> Use {
    let (row, facts) = (rows[Int(place)], facts[Int(place)])
    var use = Use(sequence: row.sequence, bytes: facts.bytes, time: row.time, count: row.count)
    use.validity = facts.validity
    return use
  }

  /// Adds an entry as the one that was used last.
  mutating func add(_ use: Use) {
    remove(use.sequence)
    let place = free.popLast() ?? Int32(rows.count)
    let row = Row(sequence: use.sequence, time: use.time, count: use.count, turn: -1)
    if place == rows.count {
      rows.append(row)
      facts.append((use.bytes, use.validity))
    } else {
      (rows[Int(place)], facts[Int(place)]) = (row, (use.bytes, use.validity))
    }
    takeTurn(place)
    places.insert(use.sequence, place)
    bytes += use.bytes
    closeGaps()
  }

  /// Takes an entry out.
  @discardableResult
  mutating func remove(_ sequence: UInt64) -> Use? {
    guard let place = places.remove(sequence, { rows[Int($0)].sequence == sequence })
    else { return nil }
    rows[Int(place)].turn = -1
    free.append(place)
    let use = use(at: place)
    bytes -= use.bytes
    passGone()
    return use
  }

  /// Notes that entries were read, in the order of their uses; one that is not known is left out.
  ///
  /// What many uses wait for in memory is asked for before the first of them needs it.
  /// - Parameter reads: sequences, and nanoseconds since 1970.
  /// - Returns: how many are known.
  @discardableResult
  mutating func note(_ reads: [(sequence: UInt64, time: Int64)]) -> Int {
    for read in reads { touched &+= Int(places.home(of: read.sequence)) }
    for read in reads {
      let place = places.likelyPlace(of: read.sequence)
      if place >= 0 { touched &+= Int(rows[place].turn) }
    }
    var known = 0
    for read in reads {
      guard let place = place(of: read.sequence) else { continue }
      known += 1
      rows[Int(place)].time = read.time / 1_000_000
      if rows[Int(place)].count < .max { rows[Int(place)].count += 1 }
      takeTurn(place)
    }
    passGone()
    closeGaps()
    return known
  }

  /// Remembers how long an entry is valid.
  mutating func note(_ validity: Validity, of sequence: UInt64) {
    guard let place = place(of: sequence) else { return }
    facts[Int(place)].validity = validity
  }

  private mutating func takeTurn(_ place: Int32) {
    rows[Int(place)].turn = Int32(turns.count)
    turns.append(place)
  }

  private func counts(_ turn: Int) -> Bool { Int(rows[Int(turns[turn])].turn) == turn }

  private mutating func passGone() {
    while first < turns.count, !counts(first) { first += 1 }
  }

  /// Moves the turns that count to the front, once the others are more. So one use of as many as
  /// there are entries takes as long as a look at all of them.
  private mutating func closeGaps() {
    guard turns.count > 2 * count + 64 else { return }
    var kept = 0
    for turn in first..<turns.count where counts(turn) {
      rows[Int(turns[turn])].turn = Int32(kept)
      turns[kept] = turns[turn]
      kept += 1
    }
    turns.removeLast(turns.count - kept)
    first = 0
  }

  /// The next entries, in no order that means anything: all of them come in turn.
  /// - Parameter hand: where to go on; 0 to begin.
  func next(_ most: Int, from hand: inout Int) -> [Use] {
    var found: [Use] = []
    for _ in 0..<min(most, rows.count) {
      if hand >= rows.count { hand = 0 }
      if rows[hand].turn >= 0 { found.append(use(at: Int32(hand))) }
      hand += 1
    }
    return found
  }

  /// All entries, the one that was used least recently first.
  func forEach(_ body: (Use) -> Bool) {
    for turn in first..<turns.count where counts(turn) {
      guard body(use(at: turns[turn])) else { return }
    }
  }
}
