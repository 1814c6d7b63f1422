internal import Tidemark
internal import TidemarkEngine

// Each `visit` codes, decodes or checks a part that several messages have; see `WireProtocol.md`.

/// A message, or a part of one.
protocol WirePart {
  mutating func visit(_ v: inout WireVisitor) throws(FormatError)
}

extension WireVisitor {
  /// A scope, which JSON omits if it is everything.
  mutating func scope(_ scope: inout SyncScope) throws(FormatError) {
    if has(!scope.isEverything) { try part("scope", &scope, isOptional: true) }
  }

  /// The reach: a hash of what the caller's authorization reaches.
  mutating func reach(_ reach: inout UInt64?) throws(FormatError) {
    try field(1, "reach", &reach, 0) { (reach, v) throws(FormatError) in
      try v.value("reach", &reach)
    }
  }

  mutating func attachment(
    _ name: StaticString, _ attachment: inout AttachmentReference
  ) throws(FormatError) {
    if !isReading { try attachment.check() }
    try value(name, &attachment)
    if isReading { try attachment.check() }
  }
}

extension SyncScope: WirePart {
  mutating func visit(_ v: inout WireVisitor) throws(FormatError) {
    var labels = labels
    var prefixes = prefixBytes
    if v.normalizes {
      labels = labels.sorted().withoutRepeats()
      prefixes = prefixes.sorted { $0.lexicographicallyPrecedes($1) }.withoutRepeats()
    }
    let most = WireLimits.scopeRows
    try v.contents("labels", &labels, atMost: most, each: 2)
    try v.contents("prefixes", &prefixes, atMost: most, each: 1)
    try WireBounds.check(labels, atMost: most, 1...Limits.labelBytes, "labels")
    try WireBounds.check(prefixes, atMost: most, 0...Limits.keyBytes, "prefixes")
    // Assigned at once: each change of a scope builds its table for matching anew.
    if v.isReading || v.normalizes { self = SyncScope(labels: labels, prefixBytes: prefixes) }
  }
}

extension Array where Element: Equatable {
  /// The elements of a sorted array, each once.
  fileprivate func withoutRepeats() -> [Element] {
    var result: [Element] = []
    for element in self where element != result.last { result.append(element) }
    return result
  }
}

extension SyncLimits: WirePart {
  mutating func visit(_ v: inout WireVisitor) throws(FormatError) {
    try v.number("changes", &changes, in: 1...WireLimits.statedLimit)
    try v.number("bytes", &bytes, in: 1...WireLimits.statedLimit)
  }
}

extension FeedRange: WirePart {
  mutating func visit(_ v: inout WireVisitor) throws(FormatError) {
    let blank = FeedEpoch(epoch: 0, firstOffset: 0)
    // A frame has an epoch's first offset as the difference from the epoch before.
    var first: UInt64 = 0
    try v.list("epochs", &epochs, blank, count: 0...Limits.epochs, each: 9) {
      (row, v) throws(FormatError) in
      try v.value("epoch", &row.epoch)
      var offset = row.firstOffset
      if !v.isJSON, !v.isReading {
        guard offset >= first else { throw FormatError("epochs are not in order") }
        offset -= first
      }
      try v.count("first", &offset)
      row.firstOffset = v.isJSON ? offset : offset + first
      // Equal to the one before if nothing was written in that epoch.
      guard row.firstOffset >= max(first, 1) else { throw FormatError("epochs are not in order") }
      first = row.firstOffset
      try FeedPosition(epoch: 0, offset: first).check()
    }
    try v.count("head", &head)
    try v.count("truncated_through", &truncatedThrough, isOptional: true)
  }
}

extension ReplicaMark: WirePart {
  mutating func visit(_ v: inout WireVisitor) throws(FormatError) {
    if v.normalizes { cutTexts() }
    try v.count("number", &number)
    try v.value("batch", &batchID)
    try v.verdicts(&verdicts)
    try WireBounds.check(rows: verdicts.count)
    for verdict in verdicts { try verdict.position?.check() }
  }

  private mutating func cutTexts() {
    var left = WireLimits.markTextBytes
    var last: SyncRejection?
    for index in verdicts.indices {
      guard case .rejected(var rejection) = verdicts[index] else { continue }
      rejection.code.cut(to: SyncRejection.codeBytes)
      rejection.message.cut(to: WireLimits.textBytes)
      // A run of equal rejections has its text once.
      if rejection.message != last?.message {
        if rejection.message.utf8.count > left { rejection.message = "" }
        left -= rejection.message.utf8.count
      }
      last = rejection
      verdicts[index] = .rejected(rejection)
    }
  }
}

extension SyncRejection: WirePart {
  mutating func visit(_ v: inout WireVisitor) throws(FormatError) {
    try v.text("code", &code, atMost: SyncRejection.codeBytes)
    try v.text("message", &message, atMost: WireLimits.textBytes, isOptional: true)
  }
}

extension PushVerdict {
  /// The verdicts' names in JSON, and numbers in frames: `WireProtocol.md`, section "Mark".
  enum Code: Int, CaseIterable, WireChoice {
    case applied, duplicate, conflict, lost, rejected, aborted

    static var wireOrder: [Self] { allCases }
    static let wireNames: [StaticString] = [
      "applied", "duplicate", "conflict", "lost", "rejected", "aborted",
    ]
  }

  var code: Code {
    switch self {
    case .applied: .applied
    case .duplicate: .duplicate
    case .conflict: .conflict
    case .lost: .lost
    case .rejected: .rejected
    case .aborted: .aborted
    }
  }

  init(_ code: Code, at position: FeedPosition, _ rejection: SyncRejection? = nil) {
    self =
      switch code {
      case .applied: .applied(position)
      case .duplicate: .duplicate(position)
      case .conflict: .conflict(position)
      case .lost: .lost(position)
      case .rejected: .rejected(rejection ?? SyncRejection(code: "", message: ""))
      case .aborted: .aborted
      }
  }

  /// The position of the verdict, if it has one.
  package var position: FeedPosition? {
    switch self {
    case .applied(let position), .duplicate(let position), .conflict(let position),
      .lost(let position):
      position
    case .rejected, .aborted: nil
    }
  }

  /// The same verdict with another position, if it has one.
  package func at(_ position: FeedPosition) -> PushVerdict {
    self.position == nil ? self : PushVerdict(code, at: position)
  }
}

extension DigestPart {
  /// - Parameter rows: how many keys this part and all after it may have.
  mutating func visit(_ v: inout WireVisitor, _ rows: inout Int) throws(FormatError) {
    try v.part("total", &total)
    var hasKeys = if case .keys = content { true } else { false }
    try v.flags(1)
    try v.presence(of: "keys", or: "sums", &hasKeys)
    guard hasKeys else {
      var sums: [DigestSum] = if case .sums(let sums) = content { sums } else { [] }
      let count = WireLimits.digestParts...WireLimits.digestParts
      try v.list("sums", &sums, DigestSum(), count: count, each: 1) {
        (sum, v) throws(FormatError) in try sum.visit(&v)
      }
      content = .sums(sums)
      return
    }
    var keys: [DigestKey] = if case .keys(let keys) = content { keys } else { [] }
    let blank = DigestKey(key: [], position: .beginning, fingerprint: 0)
    try v.list("keys", &keys, blank, count: 0...rows, each: 20) { (row, v) throws(FormatError) in
      try v.key(&row.key)
      try v.nextPosition("position", &row.position)
      try v.value("sum", &row.fingerprint)
    }
    rows -= keys.count
    content = .keys(keys)
  }
}

extension DigestSum: WirePart {
  mutating func visit(_ v: inout WireVisitor) throws(FormatError) {
    try v.number("keys", &keys, in: 0...UInt64.max)
    guard keys > 0 else {
      guard sum == 0 else { throw FormatError("a sum over no keys") }
      return
    }
    try v.value("sum", &sum)
  }
}
