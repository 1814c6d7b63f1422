internal import TidemarkEngine
internal import TidemarkSyncProtocol

/// Where own operations stand in the feed: runs of them at even distances.
///
/// The newest runs, the *tail*, are written down with every step of the progress, until there are
/// 8; the others are kept in pieces of 64, each a record, of which only those that changed are
/// written. A commit keeps a copy to go back to if it fails; the copy shares the bytes of all
/// pieces that do not change.
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

    var runs: [Run] { (try? SettledRunsCoding.decode(bytes)) ?? [] }
  }

  static let runsPerPiece = 64
  private static let runsInTail = 8

  private var pieces: [Piece] = []
  /// The newest runs, behind all pieces.
  package private(set) var tail: [Run] = []
  private var nextNumber: UInt32 = 0
  /// The values of records that are not written yet; none of one that is to be taken away.
  private var changed: [UInt32: [UInt8]] = [:]
  /// The first sequence and the last offset of those that may lie behind what was read.
  private var unread: (first: UInt64, through: UInt64)?

  package init() {}

  package var isEmpty: Bool { pieces.isEmpty && tail.isEmpty }

  /// All runs, in the order of their sequences.
  package var runs: [Run] { Self.joined(parts.flatMap { $0 }) }

  /// The same, a piece at a time: all of them may be many.
  private var parts: some Sequence<[Run]> {
    (0...pieces.count).lazy.map { $0 < pieces.count ? pieces[$0].runs : tail }
  }

  package func position(of sequence: UInt64) -> Position? {
    let place = tail.partitioningIndex { $0.last >= sequence }
    if place < tail.count, let found = tail[place].position(of: sequence) { return found }
    guard let index = pieceIndex(sequence), sequence <= pieces[index].last else { return nil }
    let run = SettledRunsCoding.run(endingFrom: sequence, in: pieces[index].bytes)
    return run?.position(of: sequence)
  }

  /// The index of the last piece that begins at a sequence or before it.
  private func pieceIndex(_ sequence: UInt64) -> Int? {
    let index = pieces.partitioningIndex { $0.first > sequence }
    return index > 0 ? index - 1 : nil
  }

  // MARK: Changing

  mutating func add(_ sequence: UInt64, at position: Position) {
    guard self.position(of: sequence) == nil else { return }
    noteUnread(sequence, position.offset)
    let run = Run(first: sequence, count: 1, epoch: position.epoch, offset: position.offset)
    if let last = pieces.last?.last, sequence < last {
      let index = pieceIndex(sequence) ?? 0
      let runs = Self.inserting(run, into: pieces[index].runs)
      let fits = runs.count <= Self.runsPerPiece
      // Halves have room for the next one.
      replace(index, with: runs, perPiece: fits ? runs.count : runs.count / 2 + 1)
    } else if let last = tail.last?.last, sequence < last {
      tail = Self.inserting(run, into: tail)
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
  /// - Parameters:
  ///   - least: with so many or fewer none is looked at.
  ///   - isNeeded: whether one of a run's operations may be asked for.
  func pruned<E: Error>(
    above least: Int, _ isNeeded: (Run) throws(E) -> Bool
  ) throws(E) -> [Run]? {
    let count = parts.reduce(0) { $0 + $1.count }
    guard count > least else { return nil }
    var kept: [Run] = []
    for part in parts {
      for run in part where try isNeeded(run) { kept.append(run) }
      guard kept.count <= count / 2 else { return nil }
    }
    return kept
  }

  mutating func replaceAll(with runs: [Run]) {
    for piece in pieces { changed[piece.number] = [] }
    (pieces, tail, nextNumber) = ([], runs, 0)
  }

  // MARK: Unread

  private mutating func noteUnread(_ first: UInt64, _ through: UInt64) {
    unread = (min(first, unread?.first ?? first), max(through, unread?.through ?? through))
  }

  /// Looks for the operations that stand behind what was read of the feed.
  mutating func findUnread(after offset: UInt64) {
    unread = nil
    for part in parts {
      for run in part where run.lastOffset > offset { noteUnread(run.first, run.lastOffset) }
    }
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
    if tail.count >= Self.runsInTail {
      // Into the last piece as long as it has room.
      var (index, runs) = (pieces.count, tail)
      if let last = pieces.last?.runs, last.count < Self.runsPerPiece {
        (index, runs) = (index - 1, last + tail)
      }
      replace(index, with: runs, perPiece: Self.runsPerPiece)
      tail = []
    }
    defer { changed = [:] }
    return changed.sorted { $0.key < $1.key }.map { (index: $0.key, value: $0.value) }
  }

  /// Puts runs in the place of a piece, or behind all: as many pieces as they need.
  private mutating func replace(_ index: Int, with runs: [Run], perPiece: Int) {
    var number: UInt32? = index < pieces.count ? pieces[index].number : nil
    var new: [Piece] = []
    for start in stride(from: 0, to: runs.count, by: perPiece) {
      let part = runs[start..<min(start + perPiece, runs.count)]
      guard let piece = Piece(number ?? nextNumber, part) else { continue }
      if number == nil { nextNumber += 1 }
      number = nil
      changed[piece.number] = piece.bytes
      new.append(piece)
    }
    pieces.replaceSubrange(index..<min(index + 1, pieces.count), with: new)
  }

  /// Runs with another one, of an operation that none of them has; it may lie in a gap of one.
  private static func inserting(_ added: Run, into runs: [Run]) -> [Run] {
    let index = runs.partitioningIndex { $0.last > added.first }
    guard index < runs.count else { return joined(runs + [added]) }
    let parted = runs[index]
    let before = parted.count(before: added.first)
    let parts = [
      Run(parted, from: 0, count: before), added,
      Run(parted, from: before, count: parted.count - before),
    ]
    var result = runs
    result.replaceSubrange(index...index, with: parts.compactMap { $0 })
    return joined(result)
  }

  /// Runs, as one where they follow each other without a gap.
  private static func joined(_ runs: [Run]) -> [Run] {
    var result: [Run] = []
    for run in runs {
      if result.isEmpty || !result[result.count - 1].join(run) { result.append(run) }
    }
    return result
  }

  // MARK: Reading

  /// - Parameter records: the values of the records, with their numbers.
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
