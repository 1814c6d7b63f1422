internal import TidemarkEngine
internal import TidemarkSyncProtocol

/// The feed positions of own changes (of this store) that the peer has applied, as runs at even
/// distances. They are the bases of later changes, and serve to recognise own entries in pages.
///
/// The newest runs, the *tail*, are saved with every step of the progress, up to 8; the others in
/// pieces of 64, each a record, which is written only when changed. A commit works on a copy, so
/// that a failure changes nothing; copies share the bytes of unchanged pieces.
package struct AcknowledgedRuns: Sendable {
  package typealias Run = AcknowledgedRun

  /// The runs of one record, encoded.
  private struct Piece: Sendable {
    var number: UInt64
    var first: UInt64
    var last: UInt64
    var bytes: [UInt8]

    /// - Returns: nil when there are no runs.
    init?(_ number: UInt64, _ runs: ArraySlice<Run>) {
      guard let first = runs.first, let last = runs.last else { return nil }
      self.number = number
      self.first = first.first
      self.last = last.last
      bytes = AcknowledgedRunsCoding.encode(runs)
    }

    var runs: [Run] { (try? AcknowledgedRunsCoding.decode(bytes)) ?? [] }
  }

  static let runsPerPiece = 64
  private static let runsInTail = 8

  private var pieces: [Piece] = []
  /// The newest runs, after those of all pieces.
  package private(set) var tail: [Run] = []
  private var nextNumber: UInt64 = 0
  /// The values of records that are not written yet; an empty one removes its record.
  private var changed: [UInt64: [UInt8]] = [:]
  /// The first sequence and the last offset of the changes that may be later in the feed than the
  /// cursor.
  private var unread: (first: UInt64, through: UInt64)?

  package init() {}

  package var isEmpty: Bool { pieces.isEmpty && tail.isEmpty }

  /// All runs, in the order of their sequences.
  package var runs: [Run] { Self.joined(parts.flatMap { $0 }) }

  /// The same, decoded piece by piece to save memory.
  private var parts: some Sequence<[Run]> {
    (0...pieces.count).lazy.map { $0 < pieces.count ? pieces[$0].runs : tail }
  }

  package func position(of sequence: UInt64) -> FeedPosition? {
    let place = tail.partitioningIndex { $0.last >= sequence }
    if place < tail.count, let found = tail[place].position(of: sequence) { return found }
    guard let index = pieceIndex(sequence), sequence <= pieces[index].last else { return nil }
    let run = AcknowledgedRunsCoding.run(endingFrom: sequence, in: pieces[index].bytes)
    return run?.position(of: sequence)
  }

  /// The index of the last piece that begins at or before a sequence.
  private func pieceIndex(_ sequence: UInt64) -> Int? {
    let index = pieces.partitioningIndex { $0.first > sequence }
    return index > 0 ? index - 1 : nil
  }

  // MARK: Changing

  mutating func add(_ sequence: UInt64, at position: FeedPosition) {
    guard self.position(of: sequence) == nil else { return }
    extendUnread(sequence, position.offset)
    let run = Run(first: sequence, count: 1, epoch: position.epoch, offset: position.offset)
    if let last = pieces.last?.last, sequence < last {
      let index = pieceIndex(sequence) ?? 0
      let runs = Self.inserting(run, into: pieces[index].runs)
      let fits = runs.count <= Self.runsPerPiece
      // A full piece is split in halves, with room for more.
      replace(index, with: runs, perPiece: fits ? runs.count : runs.count / 2 + 1)
    } else if let last = tail.last?.last, sequence < last {
      tail = Self.inserting(run, into: tail)
    } else if tail.isEmpty || !tail[tail.count - 1].extend(sequence, at: position) {
      tail.append(run)
    }
  }

  /// Removes everything, for another feed.
  mutating func removeAll() {
    replaceAll(with: [])
    unread = nil
  }

  /// Removes the changes that a restored feed has lost, and returns their sequences.
  /// - Parameter isKept: whether the feed still has a position.
  mutating func removeLost(_ isKept: (FeedPosition) -> Bool) -> [UInt64] {
    var lost: [UInt64] = []
    var kept: [Run] = []
    for run in runs {
      var count = run.count
      // The feed may have kept a first part of the run.
      if !isKept(FeedPosition(epoch: run.epoch, offset: run.lastOffset)) {
        count = 0
        while isKept(FeedPosition(epoch: run.epoch, offset: run.offset + count * run.stride)) {
          count += 1
        }
        lost += run.sequences.dropFirst(Int(count))
      }
      if let part = Run(run, from: 0, count: count) { kept.append(part) }
    }
    if !lost.isEmpty { replaceAll(with: kept) }
    return lost
  }

  /// The runs that are still needed, if these are at most half of all; else nil, since rewriting
  /// would save too little.
  /// - Parameters:
  ///   - least: with so many runs or fewer there is nothing to prune.
  ///   - isNeeded: whether the position of one of a run's changes may be asked for.
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

  /// Computes `unread` anew for a cursor.
  mutating func findUnread(after offset: UInt64) {
    unread = nil
    for part in parts {
      for run in part where run.lastOffset > offset { extendUnread(run.first, run.lastOffset) }
    }
  }

  /// The first change that may be later in the feed than the cursor's offset.
  /// - Returns: its sequence; nil if there is none. Entries pulled before it are older than it and
  ///   must not win over it.
  mutating func firstUnread(after offset: UInt64) -> UInt64? {
    if let unread, unread.through <= offset { self.unread = nil }
    return unread?.first
  }

  // MARK: Writing

  /// Moves a full tail into pieces, and returns the records to write besides the tail: number and
  /// value, which is empty for one to remove.
  mutating func drainChanges() -> [(index: UInt64, value: [UInt8])] {
    if tail.count >= Self.runsInTail {
      // The last piece is filled first.
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

  /// Replaces a piece by runs, or appends them, in as many pieces as they need.
  private mutating func replace(_ index: Int, with runs: [Run], perPiece: Int) {
    var number: UInt64? = index < pieces.count ? pieces[index].number : nil
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

  /// Inserts a run of one change, which may split a run that has a gap at its sequence.
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

  /// Joins runs that follow each other without a gap.
  private static func joined(_ runs: [Run]) -> [Run] {
    var result: [Run] = []
    for run in runs {
      if result.isEmpty || !result[result.count - 1].join(run) { result.append(run) }
    }
    return result
  }

  // MARK: Reading

  /// - Parameter records: the numbers and values of the records.
  init(decoding records: [(number: UInt64, value: [UInt8])], tail: [Run] = []) throws(FormatError) {
    for record in records {
      guard record.number < Self.mostNumbers else { throw FormatError("too many runs") }
      let runs = try AcknowledgedRunsCoding.decode(record.value)
      nextNumber = max(nextNumber, record.number + 1)
      if let piece = Piece(record.number, runs[...]) { pieces.append(piece) }
    }
    pieces.sort { $0.first < $1.first }
    let bounds = pieces.map { ($0.first, $0.last) } + tail.map { ($0.first, $0.last) }
    for (previous, next) in zip(bounds, bounds.dropFirst()) where previous.1 >= next.0 {
      throw FormatError("runs of positions out of order")
    }
    self.tail = tail
  }

  private static let mostNumbers: UInt64 = 1 << 30
}

/// A run: own changes at even distances both in the log and in the feed, such as those of one
/// batch, or of edits sent one by one.
package struct AcknowledgedRun: Sendable, Hashable {
  package var first: UInt64
  package var count: UInt64
  package var epoch: UInt64
  package var offset: UInt64
  /// The distance of its sequences.
  package var step: UInt64 = 1
  /// The distance of its offsets.
  package var stride: UInt64 = 1

  package var last: UInt64 { first + (count - 1) * step }
  package var lastOffset: UInt64 { offset + (count - 1) * stride }

  static let mostDistance: UInt64 = 1 << 16

  /// How many changes of the run are before a sequence.
  func count(before sequence: UInt64) -> UInt64 {
    sequence <= first ? 0 : min(count, (sequence - first + step - 1) / step)
  }

  /// The position of a change; nil if it is not of this run.
  func position(of sequence: UInt64) -> FeedPosition? {
    guard first <= sequence, sequence <= last, (sequence - first) % step == 0 else { return nil }
    return FeedPosition(epoch: epoch, offset: offset + (sequence - first) / step * stride)
  }

  var sequences: some Sequence<UInt64> {
    (0..<count).lazy.map { first + $0 * step }
  }

  /// Appends a run whose changes follow without a gap, in the log and in the feed.
  /// - Returns: false if they do not; then nothing has changed.
  mutating func join(_ next: AcknowledgedRun) -> Bool {
    guard epoch == next.epoch, step == 1, stride == 1, next.step == 1, next.stride == 1,
      last + 1 == next.first, lastOffset + 1 == next.offset
    else { return false }
    count += next.count
    return true
  }

  /// Appends a change at the run's distances.
  /// - Returns: false if its distances differ; then nothing has changed.
  mutating func extend(_ sequence: UInt64, at position: FeedPosition) -> Bool {
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

extension AcknowledgedRun {
  /// A part of a run; nil if empty.
  init?(_ run: AcknowledgedRun, from: UInt64, count: UInt64) {
    guard count > 0 else { return nil }
    self = run
    first += from * step
    offset += from * stride
    self.count = count
    if count == 1 { (step, stride) = (1, 1) }
  }
}

/// Codes settled runs, as described in `HowReplicationWorks.md`.
enum AcknowledgedRunsCoding {
  /// - Parameter epoch: the epoch that the first run has unless it states another.
  static func encode(_ runs: ArraySlice<AcknowledgedRun>, epoch: UInt64 = 0) -> [UInt8] {
    var writer = ByteWriter()
    writer.u8(2)
    var previous: AcknowledgedRun?
    var distances: (UInt64, UInt64) = (1, 1)
    for run in runs {
      let isOther = run.epoch != previous?.epoch ?? epoch
      // A run of one change has no distances.
      let isUneven = run.count > 1 && (run.step, run.stride) != distances
      writer.varint(run.first - (previous.map { $0.last + 1 } ?? 0))
      writer.varint(run.count << 2 | (isOther ? 1 : 0) | (isUneven ? 2 : 0))
      if isOther { writer.u64(run.epoch) }
      writer.zigzag(Int64(bitPattern: run.offset &- (previous.map { $0.lastOffset + 1 } ?? 0)))
      if isUneven {
        distances = (run.step, run.stride)
        writer.varint(run.step)
        writer.varint(run.stride)
      }
      previous = run
    }
    return writer.bytes
  }

  /// The first run of a record that ends at or after a sequence.
  static func run(endingFrom sequence: UInt64, in bytes: [UInt8]) -> AcknowledgedRun? {
    var found: AcknowledgedRun?
    try? read(bytes, 0) { run in
      if run.last < sequence { return true }
      found = run
      return false
    }
    return found
  }

  static func decode(_ bytes: [UInt8], epoch: UInt64 = 0) throws(FormatError) -> [AcknowledgedRun] {
    var runs: [AcknowledgedRun] = []
    try read(bytes, epoch) { run in
      runs.append(run)
      return true
    }
    return runs
  }

  /// - Parameter body: returns whether to continue.
  private static func read(
    _ bytes: [UInt8], _ first: UInt64, _ body: (AcknowledgedRun) -> Bool
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
      var run = AcknowledgedRun(first: first, count: bits >> 2, epoch: epoch, offset: offset)
      if run.count > 1 { (run.step, run.stride) = (step, stride) }
      guard !isLate, isSound(run) else { throw FormatError("runs of positions out of order") }
      (sequence, offset) = (run.last + 1, run.lastOffset + 1)
      guard body(run) else { return }
    }
  }

  /// Whether a run is not empty and its numbers are within limits.
  private static func isSound(_ run: AcknowledgedRun) -> Bool {
    run.count > 0 && run.count < 1 << 46 && run.first < 1 << 62 && run.offset < 1 << 62
      && (1...AcknowledgedRun.mostDistance).contains(run.step)
      && (1...AcknowledgedRun.mostDistance).contains(run.stride)
  }
}
