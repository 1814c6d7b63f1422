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
    extendUnread(sequence, position.offset)
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
  func pruned<E: Error>(above least: Int, _ isNeeded: (Run) throws(E) -> Bool) throws(E) -> [Run]? {
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

  private mutating func extendUnread(_ first: UInt64, _ through: UInt64) {
    unread = (min(first, unread?.first ?? first), max(through, unread?.through ?? through))
  }

  /// Looks for the operations that stand behind what was read of the feed.
  mutating func findUnread(after offset: UInt64) {
    unread = nil
    for part in parts {
      for run in part where run.lastOffset > offset { extendUnread(run.first, run.lastOffset) }
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
  mutating func drainChanges() -> [(index: UInt32, value: [UInt8])] {
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
  init(decoding records: [(number: UInt32, value: [UInt8])], tail: [Run] = []) throws(FormatError) {
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

/// Own operations at even distances, in the log and in the feed: what was sent in one batch, or
/// edit by edit.
package struct SettledRun: Sendable, Hashable {
  package var first: UInt64
  package var count: UInt64
  package var epoch: UInt64
  package var offset: UInt64
  /// The distance of two sequences.
  package var step: UInt64 = 1
  /// The distance of two offsets.
  package var stride: UInt64 = 1

  package var last: UInt64 { first + (count - 1) * step }
  package var lastOffset: UInt64 { offset + (count - 1) * stride }

  static let mostDistance: UInt64 = 1 << 16

  /// How many operations stand before a sequence.
  func count(before sequence: UInt64) -> UInt64 {
    sequence <= first ? 0 : min(count, (sequence - first + step - 1) / step)
  }

  /// Where an operation stands; nil when it is not of this run.
  func position(of sequence: UInt64) -> Position? {
    guard first <= sequence, sequence <= last, (sequence - first) % step == 0 else { return nil }
    return Position(epoch: epoch, offset: offset + (sequence - first) / step * stride)
  }

  var sequences: some Sequence<UInt64> {
    (0..<count).lazy.map { first + $0 * step }
  }

  /// Goes on with a run whose operations follow without a gap, here and in the feed.
  /// - Returns: false when it does not go on so; then nothing has changed.
  mutating func join(_ next: SettledRun) -> Bool {
    guard epoch == next.epoch, step == 1, stride == 1, next.step == 1, next.stride == 1,
      last + 1 == next.first, lastOffset + 1 == next.offset
    else { return false }
    count += next.count
    return true
  }

  /// Goes on with an operation behind all others, at the distance that it has.
  /// - Returns: false when it has another one; then nothing has changed.
  mutating func extend(_ sequence: UInt64, at position: Position) -> Bool {
    guard epoch == position.epoch, position.offset > lastOffset, sequence > last else {
      return false
    }
    let (ahead, beyond) = (sequence - last, position.offset - lastOffset)
    if count == 1 {
      guard ahead <= Self.mostDistance, beyond <= Self.mostDistance else { return false }
      (step, stride) = (ahead, beyond)
    } else if ahead != step || beyond != stride {
      return false
    }
    count += 1
    return true
  }
}

extension SettledRun {
  /// Its operations one behind the other; nil where there are none.
  init?(_ run: SettledRun, from: UInt64, count: UInt64) {
    guard count > 0 else { return nil }
    self = run
    first += from * step
    offset += from * stride
    self.count = count
    if count == 1 { (step, stride) = (1, 1) }
  }
}

/// The bytes of settled runs, as in `HowReplicationWorks.md`.
enum SettledRunsCoding {
  /// - Parameter epoch: the epoch that need not be told.
  static func encode(_ runs: ArraySlice<SettledRun>, epoch: UInt64 = 0) -> [UInt8] {
    var writer = ByteWriter()
    writer.u8(2)
    var former: SettledRun?
    var distances: (UInt64, UInt64) = (1, 1)
    for run in runs {
      let isOther = run.epoch != former?.epoch ?? epoch
      // A run of one has none.
      let isUneven = run.count > 1 && (run.step, run.stride) != distances
      writer.varint(run.first - (former.map { $0.last + 1 } ?? 0))
      writer.varint(run.count << 2 | (isOther ? 1 : 0) | (isUneven ? 2 : 0))
      if isOther { writer.u64(run.epoch) }
      writer.zigzag(Int64(bitPattern: run.offset &- (former.map { $0.lastOffset + 1 } ?? 0)))
      if isUneven {
        distances = (run.step, run.stride)
        writer.varint(run.step)
        writer.varint(run.stride)
      }
      former = run
    }
    return writer.bytes
  }

  /// The first run of a record that ends at a sequence or behind it.
  static func run(endingFrom sequence: UInt64, in bytes: [UInt8]) -> SettledRun? {
    var found: SettledRun?
    try? read(bytes, 0) { run in
      if run.last < sequence { return true }
      found = run
      return false
    }
    return found
  }

  static func decode(_ bytes: [UInt8], epoch: UInt64 = 0) throws(FormatError) -> [SettledRun] {
    var runs: [SettledRun] = []
    try read(bytes, epoch) { run in
      runs.append(run)
      return true
    }
    return runs
  }

  /// - Parameter body: returns whether to go on.
  private static func read(
    _ bytes: [UInt8], _ first: UInt64, _ body: (SettledRun) -> Bool
  ) throws(FormatError) {
    var reader = ByteReader(bytes.rawSpan)
    guard try reader.u8() == 2 else { throw FormatError("positions in an unknown encoding") }
    var epoch = first
    var (sequence, offset) = (UInt64(0), UInt64(0))
    var (step, stride) = (UInt64(1), UInt64(1))
    while reader.remaining > 0 {
      let (first, isLate) = sequence.addingReportingOverflow(try reader.varint())
      let bits = try reader.varint()
      if bits & 1 != 0 { epoch = try reader.u64() }
      offset &+= UInt64(bitPattern: try reader.zigzag())
      if bits & 2 != 0 { (step, stride) = (try reader.varint(), try reader.varint()) }
      var run = SettledRun(first: first, count: bits >> 2, epoch: epoch, offset: offset)
      if run.count > 1 { (run.step, run.stride) = (step, stride) }
      guard !isLate, isSound(run) else { throw FormatError("runs of positions out of order") }
      (sequence, offset) = (run.last + 1, run.lastOffset + 1)
      guard body(run) else { return }
    }
  }

  /// Whether a run neither is empty nor goes beyond all numbers.
  private static func isSound(_ run: SettledRun) -> Bool {
    run.count > 0 && run.count < 1 << 46 && run.first < 1 << 62 && run.offset < 1 << 62
      && (1...SettledRun.mostDistance).contains(run.step)
      && (1...SettledRun.mostDistance).contains(run.stride)
  }
}
