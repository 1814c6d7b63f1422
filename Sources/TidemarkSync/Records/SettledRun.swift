internal import TidemarkEngine
internal import TidemarkSyncProtocol

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
