internal import TidemarkEngine

extension WireVisitor {
  mutating func verdicts(_ verdicts: inout [PushVerdict]) throws(FormatError) {
    guard isJSON else { return try runs(of: &verdicts) }
    try list("verdicts", &verdicts, .aborted, count: 0...WireLimits.rows, each: 1) {
      (verdict, v) throws(FormatError) in
      var code = verdict.code
      try v.value("verdict", &code)
      if v.isReading { verdict = PushVerdict(code, at: .beginning) }
      if case .rejected(var rejection) = verdict {
        try rejection.visit(&v)
        verdict = .rejected(rejection)
      } else if var position = verdict.position {
        try v.value("position", &position)
        verdict = verdict.at(position)
      }
    }
  }

  /// Verdicts coded as runs: those in a row are mostly alike, at consecutive positions.
  mutating func runs(of verdicts: inout [PushVerdict]) throws(FormatError) {
    var count = verdicts.count
    try frame.varint(&count, atMost: WireLimits.rows)
    var last = FeedPosition.beginning
    var index = 0
    while index < count {
      var verdict = isReading ? .aborted : verdicts[index]
      var length = isReading ? 0 : Self.run(verdicts, from: index)
      try run(&verdict, &length, atMost: count - index, after: last)
      if isReading {
        if let previous = verdicts.last, verdict.continues(previous) {
          throw FormatError("two runs of verdicts are one")
        }
        try Self.append(verdict, length, to: &verdicts)
      }
      index += length
      last = verdicts[index - 1].position ?? last
    }
  }

  /// The length of the run that begins at an index.
  private static func run(_ verdicts: [PushVerdict], from start: Int) -> Int {
    var end = start + 1
    while end < verdicts.count, verdicts[end].continues(verdicts[end - 1]) { end += 1 }
    return end - start
  }

  /// The first verdict of a run, and the run's length.
  private mutating func run(
    _ first: inout PushVerdict, _ length: inout Int, atMost most: Int, after last: FeedPosition
  ) throws(FormatError) {
    var position = first.position ?? last
    var tag =
      length << WireFlags.verdictShift | first.code.rawValue
      | (position.epoch != last.epoch ? WireFlags.verdictOtherEpoch : 0)
    try frame.varint(&tag, atMost: WireLimits.rows << WireFlags.verdictShift | 15)
    length = tag >> WireFlags.verdictShift
    guard (1...most).contains(length) else {
      throw FormatError("a run of verdicts is out of bounds")
    }
    let isOther = tag & WireFlags.verdictOtherEpoch != 0
    let number = tag & (WireFlags.verdictOtherEpoch - 1)
    guard let code = PushVerdict.Code(rawValue: number) else {
      throw FormatError("verdict \(number) is not known here")
    }
    if isReading { first = PushVerdict(code, at: position) }
    if case .rejected(var rejection) = first, !isOther {
      try rejection.visit(&self)
      first = .rejected(rejection)
    } else if first.position != nil {
      try frame.epoch(&position.epoch, isOther: isOther, than: last.epoch)
      try frame.difference(&position.offset, from: last.offset &+ 1)
      first = first.at(position)
    } else if isOther {
      throw FormatError("verdict \(number) is not known here")
    }
  }

  private static func append(
    _ first: PushVerdict, _ count: Int, to verdicts: inout [PushVerdict]
  ) throws(FormatError) {
    guard let position = first.position else {
      verdicts.append(contentsOf: repeatElement(first, count: count))
      return
    }
    guard position.offset <= .max - UInt64(count - 1) else {
      throw FormatError("an offset is out of bounds")
    }
    for step in 0..<UInt64(count) {
      verdicts.append(first.at(FeedPosition(epoch: position.epoch, offset: position.offset + step)))
    }
  }
}

extension PushVerdict {
  /// Whether it continues a run after the previous verdict: the same code, at the next offset.
  fileprivate func continues(_ previous: PushVerdict) -> Bool {
    guard code == previous.code else { return false }
    if case .rejected(let a) = self, case .rejected(let b) = previous {
      // By bytes, as Swift's equality of strings also holds for other codings of a character.
      return a.code.utf8.elementsEqual(b.code.utf8) && a.message.utf8.elementsEqual(b.message.utf8)
    }
    guard let position, let before = previous.position else { return self == previous }
    return before.offset < .max && position.epoch == before.epoch
      && position.offset == before.offset + 1
  }
}
