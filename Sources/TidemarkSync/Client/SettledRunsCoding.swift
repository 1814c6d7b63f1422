internal import TidemarkEngine

/// The bytes of a record of settled runs.
///
/// ```
/// u8      0: this encoding
/// per run:
/// varint  sequences between the run before, or 0, and this one
/// varint  count of sequences, times two; plus one when the epoch is another than before
/// u64     the epoch, if it is another, as that of the first run is
/// varint  distance of the offset from the end of the run before, or from 0: zigzag
/// ```
/// An edit that is sent by itself takes three bytes.
enum SettledRunsCoding {
  typealias Run = SettledRuns.Run

  static func encode(_ runs: ArraySlice<Run>) -> [UInt8] {
    var writer = ByteWriter()
    writer.u8(0)
    var former: Run?
    for run in runs {
      let isOther = run.epoch != former?.epoch
      writer.varint(run.first - (former.map { $0.last + 1 } ?? 0))
      writer.varint(run.count << 1 | (isOther ? 1 : 0))
      if isOther { writer.u64(run.epoch) }
      writer.zigzag(Int64(bitPattern: run.offset &- (former.map { $0.lastOffset + 1 } ?? 0)))
      former = run
    }
    return writer.bytes
  }

  /// The runs of a record that was encoded here.
  static func runs(_ bytes: [UInt8]) -> [Run] {
    var runs: [Run] = []
    try? read(bytes) { run in
      runs.append(run)
      return true
    }
    return runs
  }

  /// The run of a record that holds a sequence.
  static func run(of sequence: UInt64, in bytes: [UInt8]) -> Run? {
    var found: Run?
    try? read(bytes) { run in
      if run.last < sequence { return true }
      if run.first <= sequence { found = run }
      return false
    }
    return found
  }

  static func decode(_ bytes: [UInt8]) throws(FormatError) -> [Run] {
    var runs: [Run] = []
    try read(bytes) { run in
      runs.append(run)
      return true
    }
    return runs
  }

  /// - Parameter body: returns whether to go on.
  private static func read(_ bytes: [UInt8], _ body: (Run) -> Bool) throws(FormatError) {
    var reader = ByteReader(bytes.rawSpan)
    guard try reader.u8() == 0 else { throw FormatError("positions in an unknown encoding") }
    var epoch: UInt64?
    var (sequence, offset) = (UInt64(0), UInt64(0))
    while reader.remaining > 0 {
      let gap = try reader.varint()
      let bits = try reader.varint()
      if bits & 1 != 0 { epoch = try reader.u64() }
      let (first, isLate) = sequence.addingReportingOverflow(gap)
      offset &+= UInt64(bitPattern: try reader.zigzag())
      let count = bits >> 1
      guard let epoch, !isLate else { throw disorder }
      let run = Run(first: first, count: count, epoch: epoch, offset: offset)
      try check(run)
      (sequence, offset) = (run.last + 1, run.lastOffset + 1)
      guard body(run) else { return }
    }
  }

  private static func check(_ run: Run) throws(FormatError) {
    let most = UInt64(Int64.max)
    guard run.count > 0, run.first < most, run.offset < most, run.count < most else {
      throw disorder
    }
  }

  private static var disorder: FormatError { FormatError("runs of positions out of order") }
}
