internal import TidemarkEngine

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
