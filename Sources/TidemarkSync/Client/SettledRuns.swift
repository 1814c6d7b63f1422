internal import TidemarkEngine

/// Where own operations stand in the feed: runs of sequences whose positions follow each other.
///
/// They are kept in pieces of up to 64 runs, each a record, of which only those that changed are
/// written. A commit works on a copy: what it adds is kept apart until it has succeeded, so that
/// neither the copy nor the record grows with what was settled before.
package struct SettledRuns: Sendable {
  package struct Run: Sendable, Hashable {
    package var first: UInt64
    package var count: UInt64
    package var epoch: UInt64
    package var offset: UInt64

    var last: UInt64 { first + count - 1 }
    var lastOffset: UInt64 { offset + count - 1 }

    /// Whether another run goes on where this one ends, here and in the feed.
    func isContinued(by next: Run) -> Bool {
      last + 1 == next.first && epoch == next.epoch && lastOffset + 1 == next.offset
    }
  }

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
  }

  static let runsPerPiece = 64

  /// In the order of their sequences.
  private var pieces: [Piece] = []
  /// Runs that were added since ``fold()``, in the order of the sequences: none is in a piece.
  private var added: [Run] = []
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

  package var isEmpty: Bool { pieces.isEmpty && added.isEmpty }

  /// All runs, in the order of their sequences.
  package var runs: [Run] {
    var all: [Run] = []
    for piece in pieces { all += SettledRunsCoding.runs(piece.bytes) }
    return Self.merge(all, added[...])
  }

  /// Where an operation stands in the feed; nil when it is not there.
  package func position(of sequence: UInt64) -> Position? {
    guard let run = addedRun(sequence) ?? keptRun(sequence) else { return nil }
    return Position(epoch: run.epoch, offset: run.offset + (sequence - run.first))
  }

  private func addedRun(_ sequence: UInt64) -> Run? {
    let index = addedIndex(sequence)
    return index < added.count && added[index].first <= sequence ? added[index] : nil
  }

  private func keptRun(_ sequence: UInt64) -> Run? {
    guard let index = pieceIndex(sequence), sequence <= pieces[index].last else { return nil }
    return SettledRunsCoding.run(of: sequence, in: pieces[index].bytes)
  }

  /// The index of the first added run that ends at a sequence or after it.
  private func addedIndex(_ sequence: UInt64) -> Int {
    var low = 0
    var high = added.count
    while low < high {
      let middle = (low + high) / 2
      if added[middle].last < sequence { low = middle + 1 } else { high = middle }
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
    guard addedRun(sequence) == nil, keptRun(sequence) == nil else { return }
    noteUnread(sequence, position.offset)
    let run = Run(first: sequence, count: 1, epoch: position.epoch, offset: position.offset)
    let index = addedIndex(sequence)
    if index > 0, added[index - 1].isContinued(by: run) {
      added[index - 1].count += 1
    } else {
      added.insert(run, at: index)
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
      if isKept(Position(epoch: run.epoch, offset: run.lastOffset)) {
        kept.append(run)
        continue
      }
      // A part of the run may be left.
      var count: UInt64 = 0
      while isKept(Position(epoch: run.epoch, offset: run.offset + count)) { count += 1 }
      if count > 0 {
        kept.append(Run(first: run.first, count: count, epoch: run.epoch, offset: run.offset))
      }
      for sequence in (run.first + count)...run.last { lost.append(sequence) }
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
    let count = pieces.reduce(0) { $0 + SettledRunsCoding.runs($1.bytes).count }
    guard count > least else { return nil }
    var kept: [Run] = []
    for piece in pieces {
      for run in SettledRunsCoding.runs(piece.bytes) where try isNeeded(run) { kept.append(run) }
      guard kept.count <= count / 2 else { return nil }
    }
    return kept
  }

  /// Keeps some runs and no others.
  mutating func replaceAll(with runs: [Run]) {
    removed.formUnion(pieces.map(\.number))
    freeNumbers = (freeNumbers + pieces.map(\.number)).sorted(by: >)
    pieces = []
    added = runs
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
    for piece in pieces { look(at: SettledRunsCoding.runs(piece.bytes)) }
    look(at: added)
  }

  /// Everything up to an offset was read.
  /// - Returns: the first operation that may stand behind it; nil when none does. What stands
  ///   before it in the feed is older than what is here, and must not be taken for newer.
  mutating func firstUnread(after offset: UInt64) -> UInt64? {
    if let unread, unread.through <= offset { self.unread = nil }
    return unread?.first
  }

  // MARK: Writing

  /// Records that have to be written: the number of each with its value, which is empty for one
  /// that is taken away.
  mutating func takeChanges() -> [(index: UInt32, value: [UInt8])] {
    replacements = []
    var result: [(index: UInt32, value: [UInt8])] = []
    var rest = added[...]
    while let next = rest.first {
      let index = pieceIndex(next.first) ?? 0
      let isNew = pieces.isEmpty
      let end = index + 1 < pieces.count ? pieces[index + 1].first : .max
      let part = rest.prefix { $0.first < end }
      rest = rest.dropFirst(part.count)
      let former = isNew ? [] : SettledRunsCoding.runs(pieces[index].bytes)
      let made = split(Self.merge(former, part), isNew ? nil : pieces[index].number)
      replacements.append((index, made))
      for piece in made { result.append((piece.number, piece.bytes)) }
    }
    for number in removed.sorted() { result.append((number, [])) }
    return result
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
    replacements = []
    added = []
    removed = []
  }

  /// Two lists of runs as one, both in the order of their sequences.
  private static func merge(_ kept: [Run], _ added: ArraySlice<Run>) -> [Run] {
    var result: [Run] = []
    result.reserveCapacity(kept.count + added.count)
    func append(_ run: Run) {
      if let last = result.last, last.isContinued(by: run) {
        result[result.count - 1].count += run.count
      } else {
        result.append(run)
      }
    }
    var rest = added
    for run in kept {
      while let next = rest.first, next.first < run.first {
        append(next)
        rest = rest.dropFirst()
      }
      append(run)
    }
    for run in rest { append(run) }
    return result
  }

  // MARK: Reading

  /// - Parameter records: the values of the records, with their numbers.
  init(decoding records: [(number: UInt32, value: [UInt8])]) throws(FormatError) {
    for record in records {
      guard record.number < Self.mostNumbers else { throw FormatError("too many runs") }
      let runs = try SettledRunsCoding.decode(record.value)
      nextNumber = max(nextNumber, record.number + 1)
      if let piece = Piece(record.number, runs[...]) { pieces.append(piece) }
    }
    pieces.sort { $0.first < $1.first }
    for (former, next) in zip(pieces, pieces.dropFirst()) where former.last >= next.first {
      throw FormatError("runs of positions out of order")
    }
  }

  private static let mostNumbers: UInt32 = 1 << 30
}
