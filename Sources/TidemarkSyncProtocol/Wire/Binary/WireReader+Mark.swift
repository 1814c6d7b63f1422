internal import TidemarkEngine

extension WireReader {
  mutating func mark() throws(FormatError) -> ReplicaMark {
    var mark = ReplicaMark(number: try bytes.varint(), batchID: BatchID(try bytes.u64()))
    let count = try bytes.varint(atMost: WireLimits.rows)
    var last = Position.beginning
    while mark.verdicts.count < count {
      let tag = try bytes.varint(atMost: WireLimits.rows << WireFlags.verdictShift | 15)
      let length = tag >> WireFlags.verdictShift
      guard length > 0, length <= count - mark.verdicts.count else {
        throw FormatError("a run of verdicts is out of bounds")
      }
      let first = try verdict(tag & 15, after: last)
      if let previous = mark.verdicts.last, first.continues(previous) {
        throw FormatError("two runs of verdicts are one")
      }
      try append(first, length, to: &mark.verdicts)
      last = mark.verdicts.last?.position ?? last
    }
    return mark
  }

  /// The first verdict of a run.
  private mutating func verdict(_ tag: Int, after last: Position) throws(FormatError) -> Verdict {
    let isOther = tag & WireFlags.verdictOtherEpoch != 0
    let code = tag & ~WireFlags.verdictOtherEpoch
    switch (code, isOther) {
    case (4, false):
      return .rejected(
        Rejection(
          code: try text(atMost: WireLimits.codeBytes),
          message: try text(atMost: WireLimits.textBytes)))
    case (5, false): return .aborted
    default:
      let epoch = isOther ? try otherEpoch(than: last.epoch) : last.epoch
      let offset = try number(from: last.offset &+ 1)
      guard
        let verdict = Verdict(wireCode: code, at: Position(epoch: epoch, offset: offset))
      else { throw FormatError("verdict \(code) is not known here") }
      return verdict
    }
  }

  private func append(
    _ first: Verdict, _ count: Int, to verdicts: inout [Verdict]
  ) throws(FormatError) {
    guard let position = first.position else {
      verdicts.append(contentsOf: repeatElement(first, count: count))
      return
    }
    guard position.offset <= .max - UInt64(count - 1) else {
      throw FormatError("an offset is out of bounds")
    }
    for step in 0..<UInt64(count) {
      let next = Position(epoch: position.epoch, offset: position.offset + step)
      verdicts.append(Verdict(wireCode: first.wireCode, at: next) ?? first)
    }
  }
}
