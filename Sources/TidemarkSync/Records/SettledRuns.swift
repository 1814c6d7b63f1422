internal import TidemarkEngine
internal import TidemarkSyncProtocol

/// Where own operations stand in the feed: runs of them at even distances.
///
/// The newest runs, the *tail*, are written down with every step of the progress, until there are
/// 8; the others are kept in pieces of 64, each a record, of which only those that changed are
/// written. A commit works on a copy: what it does to pieces is kept apart until it has succeeded,
/// so that neither the copy nor what is written grows with what was settled before.
package struct SettledRuns: Sendable {
  package typealias Run = SettledRun

  /// Runs that are one record, in its encoding.
  private struct Piece: Sendable {
    var number: UInt32
    var first: UInt64
    var last: UInt64
    var bytes: [UInt8]

    /// - Returns: nil when there are no runs.
    init?(_ number: UInt32, _ runs: ArraySlice<Run>) {
      guard let first = runs.first, let last = runs.last else { return nil }
      self.number = number
      self.first = first.first
      self.last = last.last
      bytes = SettledRunsCoding.encode(runs)
    }

    var runs: [Run] { SettledRunsCoding.runs(bytes) }
  }

  static let runsPerPiece = 64
  private static let runsInTail = 8

  /// In the order of their sequences.
  private var pieces: [Piece] = []
  /// The newest runs, behind all pieces.
  package private(set) var tail: [Run] = []
  /// Runs among the others that were added since ``fold()``, in the order of the sequences.
  private var late: [Run] = []
  /// Pieces that take the place of others, by the indices of those.
  private var replacements: [(index: Int, pieces: [Piece])] = []
  /// Numbers of pieces that are gone, the greatest first.
  private var freeNumbers: [UInt32] = []
  private var nextNumber: UInt32 = 0
  /// Numbers whose records are to be taken away.
  private var removed: Set<UInt32> = []
  /// The first sequence, and the last position, of those that may lie behind what was read of the
  /// feed.
  private var unread: (first: UInt64, through: UInt64)?

  package init() {}

  package var isEmpty: Bool { pieces.isEmpty && tail.isEmpty && late.isEmpty }

  /// All runs, in the order of their sequences.
  package var runs: [Run] { Self.merge(pieces.flatMap(\.runs) + tail, late[...]) }

  /// Where an operation stands in the feed; nil when it is not there.
  package func position(of sequence: UInt64) -> Position? {
    for runs in [tail, late] {
      let index = Self.index(endingFrom: sequence, in: runs)
      if index < runs.count, let found = runs[index].position(of: sequence) { return found }
    }
    guard let index = pieceIndex(sequence), sequence <= pieces[index].last else { return nil }
    let run = SettledRunsCoding.run(endingFrom: sequence, in: pieces[index].bytes)
    return run?.position(of: sequence)
  }

  /// The index of the first run that ends at a sequence or behind it.
  private static func index(endingFrom sequence: UInt64, in runs: [Run]) -> Int {
    var low = 0
    var high = runs.count
    while low < high {
      let middle = (low + high) / 2
      if runs[middle].last < sequence { low = middle + 1 } else { high = middle }
    }
    return low
  }

  /// The index of the last piece that begins at a sequence or before it.
  private func pieceIndex(_ sequence: UInt64) -> Int? {
    var low = 0
    var high = pieces.count
    while low < high {
      let middle = (low + high) / 2
      if pieces[middle].first <= sequence { low = middle + 1 } else { high = middle }
    }
    return low > 0 ? low - 1 : nil
  }

  // MARK: Changing

  /// Adds an operation.
  mutating func add(_ sequence: UInt64, at position: Position) {
    guard self.position(of: sequence) == nil else { return }
    noteUnread(sequence, position.offset)
    let run = Run(first: sequence, count: 1, epoch: position.epoch, offset: position.offset)
    if sequence < tail.last?.last ?? pieces.last?.last ?? 0 {
      let index = Self.index(endingFrom: sequence, in: late)
      if index == 0 || !late[index - 1].join(run) { late.insert(run, at: index) }
    } else if tail.isEmpty || !tail[tail.count - 1].extend(sequence, at: position) {
      tail.append(run)
    }
  }

  /// Forgets everything: the feed is another one.
  mutating func removeAll() {
    replaceAll(with: [])
    unread = nil
  }

  /// The operations that a feed which goes up to some position only has lost.
  ///
  /// - Parameter isKept: whether the feed still has a position.
  mutating func removeLost(_ isKept: (Position) -> Bool) -> [UInt64] {
    var lost: [UInt64] = []
    var kept: [Run] = []
    for run in runs {
      var count = run.count
      // A part of the run may be left.
      if !isKept(Position(epoch: run.epoch, offset: run.lastOffset)) {
        count = 0
        while isKept(Position(epoch: run.epoch, offset: run.offset + count * run.stride)) {
          count += 1
        }
        lost += run.sequences.dropFirst(Int(count))
      }
      if let part = Run(run, from: 0, count: count) { kept.append(part) }
    }
    if !lost.isEmpty { replaceAll(with: kept) }
    return lost
  }

  /// The runs that are still asked for, if they are no more than half of all: less would not be
  /// worth writing them anew.
  ///
  /// - Parameters:
  ///   - least: with so many or fewer none is looked at.
  ///   - isNeeded: whether one of a run's operations may be asked for.
  func pruned<E: Error>(
    above least: Int, _ isNeeded: (Run) throws(E) -> Bool
  ) throws(E) -> [Run]? {
    // A piece at a time: all of them may be many.
    let count = pieces.reduce(tail.count) { $0 + $1.runs.count }
    guard count > least else { return nil }
    var kept: [Run] = []
    for piece in pieces {
      for run in piece.runs where try isNeeded(run) { kept.append(run) }
      guard kept.count <= count / 2 else { return nil }
    }
    for run in tail where try isNeeded(run) { kept.append(run) }
    return kept.count <= count / 2 ? kept : nil
  }

  /// Keeps some runs and no others.
  mutating func replaceAll(with runs: [Run]) {
    removed.formUnion(pieces.map(\.number))
    freeNumbers = (freeNumbers + pieces.map(\.number)).sorted(by: >)
    (pieces, late, tail) = ([], [], runs)
  }

  // MARK: Unread

  private mutating func noteUnread(_ first: UInt64, _ through: UInt64) {
    unread = (min(first, unread?.first ?? first), max(through, unread?.through ?? through))
  }

  /// Looks for the operations that stand behind what was read of the feed.
  mutating func findUnread(after offset: UInt64) {
    unread = nil
    func look(at runs: [Run]) {
      for run in runs where run.lastOffset > offset { noteUnread(run.first, run.lastOffset) }
    }
    // One after the other: all of them may be many.
    for piece in pieces { look(at: piece.runs) }
    look(at: late)
    look(at: tail)
  }

  /// Everything up to an offset was read.
  /// - Returns: the first operation that may stand behind it; nil when none does. What stands
  ///   before it in the feed is older than what is here, and must not be taken for newer.
  mutating func firstUnread(after offset: UInt64) -> UInt64? {
    if let unread, unread.through <= offset { self.unread = nil }
    return unread?.first
  }

  // MARK: Writing

  /// Records that have to be written besides the tail, which is as it is to be written afterwards:
  /// the number of each with its value, which is empty for one that is taken away.
  mutating func takeChanges() -> [(index: UInt32, value: [UInt8])] {
    replacements = []
    let end = pieces.last?.last ?? 0
    var rest = late.prefix { $0.first < end }
    tail = Self.merge(tail, late.dropFirst(rest.count))
    while let next = rest.first {
      let index = pieceIndex(next.first) ?? 0
      let end = index + 1 < pieces.count ? pieces[index + 1].first : .max
      let part = rest.prefix { $0.first < end }
      rest = rest.dropFirst(part.count)
      let merged = Self.merge(pieces[index].runs, part)
      replacements.append((index, split(merged, pieces[index].number)))
    }
    if tail.count >= Self.runsInTail {
      // Into the last piece as long as it has room, and is not written for another reason.
      let last = pieces.count - 1
      let isFree = replacements.last?.index != last
      if isFree, let piece = pieces.last, piece.runs.count < Self.runsPerPiece {
        replacements.append((last, split(piece.runs + tail, piece.number)))
      } else {
        replacements.append((pieces.count, split(tail, nil)))
      }
      tail = []
    }
    let written = replacements.flatMap(\.pieces).map { (index: $0.number, value: $0.bytes) }
    return written + removed.sorted().map { (index: $0, value: []) }
  }

  private mutating func split(_ runs: [Run], _ number: UInt32?) -> [Piece] {
    var number = number
    var result: [Piece] = []
    for start in stride(from: 0, to: runs.count, by: Self.runsPerPiece) {
      let part = runs[start..<min(start + Self.runsPerPiece, runs.count)]
      if let piece = Piece(number ?? takeNumber(), part) { result.append(piece) }
      number = nil
    }
    return result
  }

  private mutating func takeNumber() -> UInt32 {
    if let free = freeNumbers.popLast() {
      removed.remove(free)
      return free
    }
    defer { nextNumber += 1 }
    return nextNumber
  }

  /// Takes the written records for good. Nobody may hold a copy any more, or all of it is copied.
  mutating func fold() {
    for replacement in replacements.reversed() {
      let index = replacement.index
      pieces.replaceSubrange(
        index..<min(index + 1, pieces.count), with: replacement.pieces)
    }
    (replacements, late, removed) = ([], [], [])
  }

  /// Two lists of runs as one, both in the order of their sequences. Those of the second one are
  /// without gaps, and may lie in the gaps of the first one's.
  private static func merge(_ kept: [Run], _ added: ArraySlice<Run>) -> [Run] {
    var result: [Run] = []
    result.reserveCapacity(kept.count + added.count)
    func append(_ run: Run?) {
      guard let run else { return }
      if result.isEmpty || !result[result.count - 1].join(run) { result.append(run) }
    }
    var rest = added
    for run in kept {
      var done: UInt64 = 0
      while let next = rest.first, next.first < run.last {
        let before = run.count(before: next.first)
        append(Run(run, from: done, count: before - done))
        append(next)
        done = before
        rest = rest.dropFirst()
      }
      append(Run(run, from: done, count: run.count - done))
    }
    for run in rest { append(run) }
    return result
  }

  // MARK: Reading

  /// - Parameters:
  ///   - records: the values of the records, with their numbers.
  ///   - tail: the newest runs.
  init(
    decoding records: [(number: UInt32, value: [UInt8])], tail: [Run] = []
  ) throws(FormatError) {
    for record in records {
      guard record.number < Self.mostNumbers else { throw FormatError("too many runs") }
      let runs = try SettledRunsCoding.decode(record.value)
      nextNumber = max(nextNumber, record.number + 1)
      if let piece = Piece(record.number, runs[...]) { pieces.append(piece) }
    }
    pieces.sort { $0.first < $1.first }
    let bounds = pieces.map { ($0.first, $0.last) } + tail.map { ($0.first, $0.last) }
    for (former, next) in zip(bounds, bounds.dropFirst()) where former.1 >= next.0 {
      throw FormatError("runs of positions out of order")
    }
    self.tail = tail
  }

  private static let mostNumbers: UInt32 = 1 << 30
}
