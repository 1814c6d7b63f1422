internal import TidemarkEngine

/// Where own operations stand in the feed: runs of sequences whose positions follow each other.
///
/// It is kept as records of up to 256 runs each, of which only those that changed are written.
package struct SettledRuns: Sendable {
  package struct Run: Sendable, Hashable {
    package var first: UInt64
    package var count: UInt64
    package var epoch: UInt64
    package var offset: UInt64

    var last: UInt64 { first + count - 1 }
    var lastOffset: UInt64 { offset + count - 1 }
  }

  static let runsPerRecord = 256

  /// In the order of their sequences.
  package private(set) var runs: [Run] = []
  /// The first sequence, and the last position, of those that may lie behind what was read of the
  /// feed.
  private var unread: (first: UInt64, through: UInt64)?
  /// The first run that no record holds yet.
  private(set) var changedFrom = 0

  /// The index of the first run that ends at a sequence or after it.
  private func index(_ sequence: UInt64) -> Int {
    var low = 0
    var high = runs.count
    while low < high {
      let middle = (low + high) / 2
      if runs[middle].last < sequence { low = middle + 1 } else { high = middle }
    }
    return low
  }

  /// Where an operation stands in the feed; nil when it is not there.
  package func position(of sequence: UInt64) -> Position? {
    let index = index(sequence)
    guard index < runs.count, runs[index].first <= sequence else { return nil }
    return Position(
      epoch: runs[index].epoch, offset: runs[index].offset + (sequence - runs[index].first))
  }

  /// Adds an operation.
  mutating func add(_ sequence: UInt64, at position: Position) {
    let index = index(sequence)
    if index < runs.count, runs[index].first <= sequence { return }
    noteUnread(sequence, position.offset)
    if index > 0, runs[index - 1].last + 1 == sequence, runs[index - 1].epoch == position.epoch,
      runs[index - 1].lastOffset + 1 == position.offset
    {
      runs[index - 1].count += 1
      changedFrom = min(changedFrom, index - 1)
    } else {
      runs.insert(
        Run(first: sequence, count: 1, epoch: position.epoch, offset: position.offset),
        at: index)
      changedFrom = min(changedFrom, index)
    }
  }

  private mutating func noteUnread(_ first: UInt64, _ through: UInt64) {
    unread = (min(first, unread?.first ?? first), max(through, unread?.through ?? through))
  }

  /// Looks for the operations that stand behind what was read of the feed.
  mutating func findUnread(after offset: UInt64) {
    unread = nil
    for run in runs where run.lastOffset > offset { noteUnread(run.first, run.lastOffset) }
  }

  /// Everything up to an offset was read.
  /// - Returns: the first operation that may stand behind it; nil when none does. What stands
  ///   before it in the feed is older than what is here, and must not be taken for newer.
  mutating func firstUnread(after offset: UInt64) -> UInt64? {
    if let unread, unread.through <= offset { self.unread = nil }
    return unread?.first
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
    runs = kept
    changedFrom = 0
    return lost
  }

  /// What has to be written: the number of each record with its value.
  mutating func takeChanges() -> [(index: UInt32, value: [UInt8])] {
    guard changedFrom < max(runs.count, 1) else { return [] }
    let first = changedFrom / Self.runsPerRecord
    changedFrom = runs.count
    var result: [(index: UInt32, value: [UInt8])] = []
    for index in first...(max(runs.count, 1) - 1) / Self.runsPerRecord {
      let start = index * Self.runsPerRecord
      let end = min(runs.count, start + Self.runsPerRecord)
      result.append((UInt32(index), Self.encode(runs[start..<end])))
    }
    return result
  }

  private static func encode(_ runs: ArraySlice<Run>) -> [UInt8] {
    var writer = ByteWriter()
    for run in runs {
      writer.varint(run.first)
      writer.varint(run.count)
      writer.u64(run.epoch)
      writer.varint(run.offset)
    }
    return writer.bytes
  }

  init() {}

  /// - Parameter records: the values of the records, in order.
  init(decoding records: [[UInt8]]) throws(FormatError) {
    for record in records {
      var reader = ByteReader(record.rawSpan)
      while reader.remaining > 0 {
        let first = try reader.varint()
        let count = try reader.varint()
        let epoch = try reader.u64()
        let offset = try reader.varint()
        guard count > 0, first <= UInt64.max - count, offset <= UInt64.max - count,
          runs.last.map({ $0.last < first }) ?? true
        else { throw FormatError("runs of positions out of order") }
        runs.append(Run(first: first, count: count, epoch: epoch, offset: offset))
      }
    }
    changedFrom = runs.count
  }
}
